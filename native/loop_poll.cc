#include "loop_poll.h"

#include <uv.h>

#include "check.h"
#include "sys_error.h"

namespace evictd {

struct LoopPoll::Handle {
  uv_poll_t poll = {};
  napi_async_cleanup_hook_handle cleanup_hook = nullptr;
  Client* client = nullptr;
  bool owned = true;
  bool closed = false;

  uv_handle_t* base() noexcept { return reinterpret_cast<uv_handle_t*>(&poll); }

  bool active() noexcept { return uv_is_closing(base()) == 0; }

  // Once only: the owner, its finalizer and the environment may all ask for it.
  void Close() noexcept {
    if (active()) uv_close(base(), OnClosed);
  }

  void DeleteWhenDone() noexcept {
    if (closed && !owned) delete this;
  }

  static void OnClosed(uv_handle_t* base) noexcept {
    auto* handle = static_cast<Handle*>(base->data);
    // Only now may the environment go on with its teardown.
    Check(napi_remove_async_cleanup_hook(handle->cleanup_hook) == napi_ok, "LoopPoll",
          "the cleanup hook is removed once");
    handle->closed = true;
    handle->DeleteWhenDone();
  }

  static void OnEnvironmentTeardown(napi_async_cleanup_hook_handle, void* data) noexcept {
    static_cast<Handle*>(data)->Close();
  }

  static void OnPoll(uv_poll_t* poll, int status, int) noexcept {
    auto* handle = static_cast<Handle*>(poll->data);
    // libuv reports EBADF when the descriptor is in an error state. A pidfd has none, an eventfd
    // only after 2^64 - 1 events.
    Check(status == 0, "LoopPoll", "the descriptor is in no error state");
    Check(handle->client != nullptr, "LoopPoll", "an event has a client");
    // Last: the client may free this handle's owner.
    handle->client->OnReadable();
  }
};

LoopPoll::LoopPoll(Napi::Env env, int fd) {
  uv_loop_t* loop = nullptr;
  Check(napi_get_uv_event_loop(env, &loop) == napi_ok, "LoopPoll", "the environment has a loop");

  auto handle = std::make_unique<Handle>();
  const int status = uv_poll_init(loop, &handle->poll, fd);
  if (status != 0) throw SystemError(env, -status, "epoll_ctl");
  handle->poll.data = handle.get();

  // libuv knows it now, so nothing below may fail.
  handle_.reset(handle.release());
  Check(napi_add_async_cleanup_hook(env, Handle::OnEnvironmentTeardown, handle_.get(),
                                    &handle_->cleanup_hook) == napi_ok,
        "LoopPoll", "a cleanup hook can be added");
  Check(uv_poll_start(&handle_->poll, UV_READABLE, Handle::OnPoll) == 0, "LoopPoll",
        "a fresh poll starts");
}

void LoopPoll::Deliver(Client* client) noexcept {
  handle_->client = client;
}

void LoopPoll::Unref() noexcept {
  uv_unref(handle_->base());
}

bool LoopPoll::active() const noexcept {
  return handle_ != nullptr && handle_->active();
}

void LoopPoll::Close() noexcept {
  handle_.reset();
}

void LoopPoll::LetGo::operator()(Handle* handle) const noexcept {
  handle->owned = false;
  handle->Close();
  handle->DeleteWhenDone();
}

}  // namespace evictd
