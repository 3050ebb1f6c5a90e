#ifndef EVICTD_PIDFD_CALLS_H_
#define EVICTD_PIDFD_CALLS_H_

#include <unistd.h>

namespace evictd {

// System calls that glibc 2.31 (Debian 11, Ubuntu 20.04) has no functions for, and older kernel
// headers no names. The numbers are the same on every architecture that Node supports.
constexpr long kPidfdSendSignalNumber = 424;
constexpr long kPidfdOpenNumber = 434;
constexpr long kProcessMreleaseNumber = 448;

// Each returns -1 and sets errno on failure.

inline int PidfdOpen(pid_t pid) noexcept {
  return static_cast<int>(syscall(kPidfdOpenNumber, pid, 0U));
}

inline int PidfdSendSignal(int pidfd, int signal) noexcept {
  return static_cast<int>(syscall(kPidfdSendSignalNumber, pidfd, signal, nullptr, 0U));
}

inline int ProcessMrelease(int pidfd) noexcept {
  return static_cast<int>(syscall(kProcessMreleaseNumber, pidfd, 0U));
}

}  // namespace evictd

#endif  // EVICTD_PIDFD_CALLS_H_
