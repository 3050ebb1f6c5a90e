#ifndef EVICTD_LOOP_POLL_H_
#define EVICTD_LOOP_POLL_H_

#include <napi.h>

#include <memory>

namespace evictd {

// Waits on the environment's own loop until a file descriptor is readable.
//
// The uv_poll_t must live until libuv's close callback, which comes in a later turn of the loop,
// and the environment must not go before that. So it lives on the heap, apart from its owner: it
// is freed when the owner has let go and the close callback has run, in whichever order. An
// environment that is torn down first closes it through its async cleanup hook. (A plain cleanup
// hook cannot: it returns before the close callback, and a worker that ends would unload this
// library under libuv's feet.)
class LoopPoll {
 public:
  class Client {
   public:
    // The descriptor is readable. May close the poll and may destroy its owner.
    virtual void OnReadable() noexcept = 0;

   protected:
    ~Client() = default;
  };

  // Waits for nothing.
  LoopPoll() noexcept = default;
  // Starts to wait on `fd`, which must stay open until Close(). Throws a SystemError.
  LoopPoll(Napi::Env env, int fd);

  // Names who is to be called. No event comes before: it takes a turn of the loop.
  void Deliver(Client* client) noexcept;
  // Lets the loop, and so the process, end while this is the last thing that it waits for.
  void Unref() noexcept;
  bool active() const noexcept;
  // The client is not called again. The descriptor may be closed at once, as libuv promises for
  // uv_close, and should be: thousands closed in one turn would otherwise stay open till its end.
  void Close() noexcept;

 private:
  struct Handle;
  struct LetGo {
    void operator()(Handle* handle) const noexcept;
  };
  std::unique_ptr<Handle, LetGo> handle_;
};

}  // namespace evictd

#endif  // EVICTD_LOOP_POLL_H_
