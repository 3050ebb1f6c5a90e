#ifndef EVICTD_CHECK_H_
#define EVICTD_CHECK_H_

#include <node_api.h>

namespace evictd {

// Ends the process when something is not as it must be. On in every build: a daemon that goes on
// with a broken invariant kills the wrong process.
inline void Check(bool holds, const char* location, const char* expectation) noexcept {
  if (!holds) napi_fatal_error(location, NAPI_AUTO_LENGTH, expectation, NAPI_AUTO_LENGTH);
}

}  // namespace evictd

#endif  // EVICTD_CHECK_H_
