#ifndef EVICTD_CAPABILITIES_H_
#define EVICTD_CAPABILITIES_H_

#include <napi.h>

namespace evictd {

// NativeCapabilities of src/native/types.ts.
Napi::Value Capabilities(const Napi::CallbackInfo& info);

}  // namespace evictd

#endif  // EVICTD_CAPABILITIES_H_
