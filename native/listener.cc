#include "listener.h"

namespace evictd {

Listener::Listener(Napi::Function function, const char* resource_name)
    : function_(Napi::Persistent(function)), context_(function.Env(), resource_name) {}

void Listener::Call(Napi::Object receiver,
                    std::initializer_list<napi_value> arguments) const noexcept {
  // The C interface, since FunctionReference::MakeCallback reports by C++ exception and none may
  // reach libuv. No status but this one needs an answer: in an environment that is being torn
  // down every call fails, and there is nobody left to tell.
  const napi_env env = function_.Env();
  const napi_status called =
      napi_make_callback(env, context_, receiver, function_.Value(), arguments.size(),
                         arguments.begin(), nullptr);
  if (called != napi_pending_exception) return;

  napi_value exception = nullptr;
  if (napi_get_and_clear_last_exception(env, &exception) == napi_ok) {
    napi_fatal_exception(env, exception);
  }
}

}  // namespace evictd
