#include "scheduling.h"

#include <sched.h>

#include <cerrno>

#include "arguments.h"
#include "sys_error.h"

namespace evictd {

namespace {

// What Linux gives to SCHED_RR: sched_get_priority_min(2) and _max say so on every kernel.
constexpr int32_t kPriorityMin = 1;
constexpr int32_t kPriorityMax = 99;
// The calling thread, not the process: libuv's pool and V8's workers keep their policy.
constexpr pid_t kCallingThread = 0;

}  // namespace

void SetRoundRobin(const Napi::CallbackInfo& info) {
  sched_param parameters = {};
  parameters.sched_priority = RequireInteger(info[0], "priority", kPriorityMin, kPriorityMax);
  if (sched_setscheduler(kCallingThread, SCHED_RR | SCHED_RESET_ON_FORK, &parameters) != 0) {
    throw SystemError(info.Env(), errno, "sched_setscheduler");
  }
}

}  // namespace evictd
