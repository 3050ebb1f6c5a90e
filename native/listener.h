#ifndef EVICTD_LISTENER_H_
#define EVICTD_LISTENER_H_

#include <napi.h>

#include <initializer_list>

namespace evictd {

// A JavaScript function that libuv's callbacks call. It holds the function strongly, so whoever
// holds a Listener must drop it on close: the function usually refers to the object that holds it,
// and the collector cannot see such a cycle.
class Listener {
 public:
  // `resource_name` is what async_hooks shows.
  Listener(Napi::Function function, const char* resource_name);

  // Calls the function, then runs microtasks and process.nextTick callbacks, as Node does for its
  // own events. What the function throws becomes an uncaughtException. Needs an open HandleScope.
  void Call(Napi::Object receiver, std::initializer_list<napi_value> arguments) const noexcept;

 private:
  Napi::FunctionReference function_;
  Napi::AsyncContext context_;
};

}  // namespace evictd

#endif  // EVICTD_LISTENER_H_
