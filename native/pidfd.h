#ifndef EVICTD_PIDFD_H_
#define EVICTD_PIDFD_H_

#include <napi.h>

#include <memory>

#include "listener.h"
#include "loop_poll.h"
#include "unique_fd.h"

namespace evictd {

// A process, held by its pidfd: the Pidfd of src/native/types.ts. While a listener waits for the
// exit it keeps itself from being collected; otherwise the collector closes what was forgotten.
class Pidfd final : public Napi::ObjectWrap<Pidfd>, private LoopPoll::Client {
 public:
  static Napi::Function Define(Napi::Env env);

  // Takes openPidfd's arguments.
  explicit Pidfd(const Napi::CallbackInfo& info);

 private:
  static UniqueFd Open(const Napi::CallbackInfo& info);
  Pidfd(const Napi::CallbackInfo& info, UniqueFd pidfd);

  void Signal(const Napi::CallbackInfo& info);
  void OnExit(const Napi::CallbackInfo& info);
  Napi::Value Release(const Napi::CallbackInfo& info);
  void Close(const Napi::CallbackInfo& info);
  void OnReadable() noexcept override;
  void StopWaiting() noexcept;
  // -1 once closed, which every system call answers with EBADF.
  int descriptor() const noexcept { return pidfd_ == nullptr ? -1 : pidfd_->get(); }

  // In this order, so that the poll goes before the descriptor. Shared with releases in progress:
  // see EventRegistration for why they have no duplicate.
  std::shared_ptr<UniqueFd> pidfd_;
  std::shared_ptr<Listener> listener_;
  LoopPoll poll_;
};

}  // namespace evictd

#endif  // EVICTD_PIDFD_H_
