#include "capabilities.h"

#include <sys/eventfd.h>

#include <cerrno>

#include "pidfd_calls.h"
#include "sys_error.h"
#include "unique_fd.h"

namespace evictd {

namespace {

int ProbePidfd() noexcept {
  return UniqueFd(PidfdOpen(getpid())).valid() ? 0 : errno;
}

// A kernel that has the call objects to the descriptor, and to nothing before it.
int ProbeProcessMrelease() noexcept {
  if (ProcessMrelease(-1) == 0) return 0;
  return errno == EBADF ? 0 : errno;
}

int ProbeEventfd() noexcept {
  return UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)).valid() ? 0 : errno;
}

Napi::Value CodeOrNull(Napi::Env env, int error_number) {
  if (error_number == 0) return env.Null();
  return Napi::String::New(env, ErrorCode(error_number));
}

}  // namespace

Napi::Value Capabilities(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Napi::Object capabilities = Napi::Object::New(env);
  capabilities.Set("pidfd", CodeOrNull(env, ProbePidfd()));
  capabilities.Set("processMrelease", CodeOrNull(env, ProbeProcessMrelease()));
  capabilities.Set("eventfd", CodeOrNull(env, ProbeEventfd()));
  return capabilities;
}

}  // namespace evictd
