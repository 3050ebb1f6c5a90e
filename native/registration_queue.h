#ifndef EVICTD_REGISTRATION_QUEUE_H_
#define EVICTD_REGISTRATION_QUEUE_H_

#include <napi.h>
#include <unistd.h>

#include <cerrno>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "sys_error.h"
#include "unique_fd.h"

namespace evictd {

// A line for cgroup.event_control, and the descriptors that it names by number: open until the
// kernel has read it, so that no number can become another file's before.
struct EventRegistration {
  // Shared with the watch, which may be closed at any time. Not a duplicate: older versions of
  // libuv, when they use io_uring, batch the removals from epoll, so that one may come after the
  // close and fail; epoll would then go on reporting the file until the duplicate is closed.
  std::shared_ptr<UniqueFd> event;
  UniqueFd watched;
  UniqueFd control;
  std::string line;
  // Of `control`, for the error.
  std::string control_path;
};

// Writes registrations on libuv's pool, since they may wait in the kernel, and one at a time: the
// pool's other threads (of four, by default) stay free for log writes and process_mrelease(2). The
// kernel takes the registrations of one cgroup one after the other anyway.
//
// Its length has a limit: each registration in it holds three descriptors. Lives in an
// environment's instance data, which goes after the last worker: Node first awaits what the pool
// is doing.
class RegistrationQueue {
 public:
  explicit RegistrationQueue(Napi::Env env) noexcept : env_(env) {}
  RegistrationQueue(const RegistrationQueue&) = delete;
  RegistrationQueue& operator=(const RegistrationQueue&) = delete;

  // Resolves when the kernel has taken the registration, rejects with the write's SystemError.
  Napi::Promise Add(EventRegistration registration) {
    const Napi::Promise::Deferred deferred(env_);
    waiting_.push_back({std::move(registration), deferred});
    if (!busy_) StartNext();
    return deferred.Promise();
  }

 private:
  struct Entry {
    EventRegistration registration;
    Napi::Promise::Deferred deferred;
  };

  class Worker final : public Napi::AsyncWorker {
   public:
    Worker(Napi::Env env, RegistrationQueue* queue, Entry entry)
        : AsyncWorker(env, "evictd.event_control"), queue_(queue), entry_(std::move(entry)) {}

    void Execute() override {
      const EventRegistration& registration = entry_.registration;
      const std::string& line = registration.line;
      // A control file takes a write whole or refuses it.
      if (write(registration.control.get(), line.data(), line.size()) < 0) error_number_ = errno;
    }

    void OnOK() override {
      Settle();
      // Not reached in an environment that is being torn down, where settling throws: its end
      // would wait for the whole queue. What is left is dropped with the queue.
      queue_->StartNext();
    }

   private:
    void Settle() {
      if (error_number_ == 0) {
        entry_.deferred.Resolve(Env().Undefined());
        return;
      }
      const std::string& path = entry_.registration.control_path;
      entry_.deferred.Reject(SystemError(Env(), error_number_, "write", path).Value());
    }

    RegistrationQueue* queue_;
    Entry entry_;
    int error_number_ = 0;
  };

  void StartNext() {
    busy_ = !waiting_.empty();
    if (!busy_) return;
    auto worker = std::make_unique<Worker>(env_, this, std::move(waiting_.front()));
    waiting_.pop_front();
    worker->Queue();
    // Once queued it deletes itself.
    static_cast<void>(worker.release());
  }

  Napi::Env env_;
  std::deque<Entry> waiting_;
  // A worker is at it; stays true when the environment is being torn down.
  bool busy_ = false;
};

}  // namespace evictd

#endif  // EVICTD_REGISTRATION_QUEUE_H_
