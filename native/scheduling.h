#ifndef EVICTD_SCHEDULING_H_
#define EVICTD_SCHEDULING_H_

#include <napi.h>

namespace evictd {

// The setRoundRobin of src/native/types.ts.
void SetRoundRobin(const Napi::CallbackInfo& info);

}  // namespace evictd

#endif  // EVICTD_SCHEDULING_H_
