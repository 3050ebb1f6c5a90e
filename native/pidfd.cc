#include "pidfd.h"

#include <fcntl.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "arguments.h"
#include "pidfd_calls.h"
#include "sys_error.h"

namespace evictd {

namespace {

// The kernel's PID_MAX_LIMIT on 64-bit machines.
constexpr int32_t kPidMax = 1 << 22;
// SIGRTMAX; 0 checks only.
constexpr int32_t kSignalMax = 64;

// process_mrelease(2) on libuv's pool, since it frees in the caller: gigabytes take their time.
class ReleaseWorker final : public Napi::AsyncWorker {
 public:
  ReleaseWorker(Napi::Env env, Napi::Promise::Deferred deferred, std::shared_ptr<UniqueFd> pidfd)
      : AsyncWorker(env, "evictd.process_mrelease"),
        deferred_(deferred),
        pidfd_(std::move(pidfd)) {}

  void Execute() override {
    if (ProcessMrelease(pidfd_->get()) != 0) error_number_ = errno;
  }

  void OnOK() override {
    if (error_number_ == 0) {
      deferred_.Resolve(Env().Undefined());
    } else {
      deferred_.Reject(SystemError(Env(), error_number_, "process_mrelease").Value());
    }
  }

 private:
  Napi::Promise::Deferred deferred_;
  // Held open: close() while the pool is at work would otherwise free the number for another file,
  // which the pool would then be working on.
  std::shared_ptr<UniqueFd> pidfd_;
  int error_number_ = 0;
};

}  // namespace

Napi::Function Pidfd::Define(Napi::Env env) {
  return DefineClass(env, "Pidfd",
                     {InstanceMethod<&Pidfd::Signal>("signal"),
                      InstanceMethod<&Pidfd::OnExit>("onExit"),
                      InstanceMethod<&Pidfd::Release>("release"),
                      InstanceMethod<&Pidfd::Close>("close")});
}

UniqueFd Pidfd::Open(const Napi::CallbackInfo& info) {
  const int32_t pid = RequireInteger(info[0], "pid", 1, kPidMax);
  info.This().As<Napi::Object>().DefineProperty(Napi::PropertyDescriptor::Value(
      "pid", Napi::Number::New(info.Env(), pid), napi_enumerable));

  UniqueFd pidfd(PidfdOpen(pid));
  if (!pidfd.valid()) throw SystemError(info.Env(), errno, "pidfd_open");
  // Not by pidfd_open's own flag, which Linux 5.3 to 5.9 refuse. (It does set close-on-exec.)
  if (fcntl(pidfd.get(), F_SETFL, O_NONBLOCK) != 0) throw SystemError(info.Env(), errno, "fcntl");
  return pidfd;
}

Pidfd::Pidfd(const Napi::CallbackInfo& info) : Pidfd(info, Open(info)) {}

// Nothing may throw once ObjectWrap's constructor has run, as in MemcgWatch.
Pidfd::Pidfd(const Napi::CallbackInfo& info, UniqueFd pidfd)
    : ObjectWrap(info), pidfd_(std::make_shared<UniqueFd>(std::move(pidfd))) {}

void Pidfd::Signal(const Napi::CallbackInfo& info) {
  const int32_t signal = RequireInteger(info[0], "signal", 0, kSignalMax);
  if (PidfdSendSignal(descriptor(), signal) != 0) {
    throw SystemError(info.Env(), errno, "pidfd_send_signal");
  }
}

void Pidfd::OnExit(const Napi::CallbackInfo& info) {
  const Napi::Function function = RequireFunction(info[0], "listener");
  auto listener = std::make_shared<Listener>(function, "evictd.Pidfd");
  if (!poll_.active()) {
    poll_ = LoopPoll(info.Env(), descriptor());
    poll_.Deliver(this);
    Ref();
  }
  listener_ = std::move(listener);
}

Napi::Value Pidfd::Release(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const Napi::Promise::Deferred deferred(env);
  if (pidfd_ == nullptr) {
    deferred.Reject(SystemError(env, EBADF, "process_mrelease").Value());
    return deferred.Promise();
  }
  auto worker = std::make_unique<ReleaseWorker>(env, deferred, pidfd_);
  worker->Queue();
  // Once queued it deletes itself.
  static_cast<void>(worker.release());
  return deferred.Promise();
}

void Pidfd::Close(const Napi::CallbackInfo&) {
  StopWaiting();
  pidfd_.reset();
}

void Pidfd::OnReadable() noexcept {
  const Napi::HandleScope scope(Env());
  const Napi::Object self = Value();
  const std::shared_ptr<Listener> listener = listener_;
  StopWaiting();
  listener->Call(self, {});
}

void Pidfd::StopWaiting() noexcept {
  if (!poll_.active()) return;
  poll_.Close();
  listener_.reset();
  Unref();
}

}  // namespace evictd
