#ifndef EVICTD_UNIQUE_FD_H_
#define EVICTD_UNIQUE_FD_H_

#include <unistd.h>

#include <utility>

namespace evictd {

// The only owner of one file descriptor, or of none (-1).
class UniqueFd {
 public:
  UniqueFd() noexcept = default;
  explicit UniqueFd(int fd) noexcept : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      Close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { Close(); }

  int get() const noexcept { return fd_; }
  bool valid() const noexcept { return fd_ >= 0; }

  // Gives it to whoever closes it from here on.
  int Release() noexcept { return std::exchange(fd_, -1); }

  void Close() noexcept {
    // The result is of no use: Linux frees the number even when close(2) reports an error, and a
    // second try could close a descriptor that another thread has opened meanwhile.
    if (valid()) close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

}  // namespace evictd

#endif  // EVICTD_UNIQUE_FD_H_
