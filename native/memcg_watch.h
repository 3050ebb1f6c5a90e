#ifndef EVICTD_MEMCG_WATCH_H_
#define EVICTD_MEMCG_WATCH_H_

#include <napi.h>

#include <memory>

#include "listener.h"
#include "loop_poll.h"
#include "registration_queue.h"
#include "unique_fd.h"

namespace evictd {

// An eventfd that the kernel signals when something happens to a memory cgroup (v1): the
// MemcgWatch of src/native/types.ts. While it is open it keeps itself from being collected.
class MemcgWatch final : public Napi::ObjectWrap<MemcgWatch>, private LoopPoll::Client {
 public:
  // `registrations` must live as long as the environment.
  static Napi::Function Define(Napi::Env env, RegistrationQueue* registrations);

  // Takes watchMemcg's arguments.
  explicit MemcgWatch(const Napi::CallbackInfo& info);

 private:
  // All that can fail, done.
  struct Parts {
    std::shared_ptr<UniqueFd> event;
    std::shared_ptr<Listener> listener;
    LoopPoll poll;
  };
  static Parts Open(const Napi::CallbackInfo& info);
  MemcgWatch(const Napi::CallbackInfo& info, Parts parts);

  static Napi::Value IsActive(const Napi::CallbackInfo& info);
  void Close(const Napi::CallbackInfo& info);
  void OnReadable() noexcept override;

  // In this order, so that the poll goes before the descriptor.
  // Shared with a registration that the kernel has not read yet. None when closed.
  std::shared_ptr<UniqueFd> event_;
  // Shared with the call in progress: a listener may close its own watch.
  std::shared_ptr<Listener> listener_;
  LoopPoll poll_;
};

}  // namespace evictd

#endif  // EVICTD_MEMCG_WATCH_H_
