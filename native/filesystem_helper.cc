// evictd-fs: asks the kernel about filesystems, so that evictd itself never waits for one that hangs.
// A program of its own that knows neither Node nor eviction; src/sources/filesystem-helper.ts runs it.
//
// Standard input, for each request: the length of a path in bytes (u16, 1 to PATH_MAX - 1), the path.
// Standard output, for each request, in order:
//
//    0  u32  error number of the call that failed, 0 for none
//    4  u32  that call, as in Call
//    8  u32  major, 12  u32  minor number of the device (st_dev)
//   16  u64  f_frsize: the unit of the sizes, bytes
//   24  u64  f_blocks, 32  u64  f_bfree, 40  u64  f_bavail
//   48  u64  f_files, 56  u64  f_ffree
//   64  u32  length of what follows: the mount's line of /proc/self/mountinfo, 0 where there is none
//
// All little-endian. Ends with 0 at the end of input and with 2 at a request that is none.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "unique_fd.h"

namespace evictd {

namespace {

constexpr int kExitBroken = 1;
constexpr int kExitBadRequest = 2;

constexpr size_t kAnswerBytes = 68;
// Two paths of PATH_MAX in octal are 32 KiB, mount options one page: the rest is room.
constexpr size_t kMountLineBytesMax = 64 * 1024;
constexpr size_t kFdInfoBytesMax = 1024;

// What failed. The numbers are those of the answer.
enum class Call : uint32_t { kNone = 0, kOpen = 1, kStat = 2, kStatfs = 3 };

struct Answer {
  int error_number = 0;
  Call call = Call::kNone;
  dev_t device = 0;
  struct statvfs figures = {};
};

Answer Failed(Call call) noexcept { return {.error_number = errno, .call = call}; }

// Reads `bytes` whole. Returns how many there were before the end of input.
size_t ReadWhole(int fd, std::span<char> bytes) noexcept {
  size_t length = 0;
  while (length < bytes.size()) {
    const ssize_t count = read(fd, bytes.data() + length, bytes.size() - length);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) _exit(kExitBroken);
    if (count == 0) break;
    length += static_cast<size_t>(count);
  }
  return length;
}

void WriteWhole(int fd, std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t count = write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) _exit(kExitBroken);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

template <typename Integer>
void Put(std::span<char> bytes, size_t offset, Integer value) noexcept {
  for (size_t index = 0; index < sizeof value; ++index) {
    bytes[offset + index] = static_cast<char>(value >> (8 * index) & 0xff);
  }
}

// As a directory, so that what is mounted on demand is mounted; what is none as what it is.
UniqueFd OpenPath(const char* path) noexcept {
  UniqueFd fd(open(path, O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (fd.valid() || errno != ENOTDIR) return fd;
  return UniqueFd(open(path, O_PATH | O_CLOEXEC));
}

// All from one descriptor, so that nothing can be mounted in between.
Answer Probe(const UniqueFd& fd) noexcept {
  if (!fd.valid()) return Failed(Call::kOpen);
  Answer answer;
  struct stat status = {};
  if (fstat(fd.get(), &status) != 0) return Failed(Call::kStat);
  answer.device = status.st_dev;
  if (fstatvfs(fd.get(), &answer.figures) != 0) return Failed(Call::kStatfs);
  return answer;
}

// The mount that a descriptor lies on. Source: proc(5), /proc/[pid]/fdinfo, since Linux 3.15; statx(2)
// has it only since 5.8.
std::optional<int> MountId(const UniqueFd& fd) noexcept {
  std::array<char, 64> path;
  std::snprintf(path.data(), path.size(), "/proc/self/fdinfo/%d", fd.get());
  const UniqueFd info(open(path.data(), O_RDONLY | O_CLOEXEC));
  if (!info.valid()) return std::nullopt;
  std::array<char, kFdInfoBytesMax> buffer;
  const std::string_view text(buffer.data(), ReadWhole(info.get(), buffer));
  constexpr std::string_view kField = "mnt_id:\t";
  const size_t at = text.find(kField);
  if (at == std::string_view::npos) return std::nullopt;
  int id = 0;
  const char* const digits = text.data() + at + kField.size();
  if (std::from_chars(digits, text.data() + text.size(), id).ec != std::errc()) return std::nullopt;
  return id;
}

// The lines of /proc/self/mountinfo. Those that were asked for are kept until a mount changes: with
// 1,000 mounts the file takes 1.6 ms to read.
class MountTable {
 public:
  MountTable() noexcept : file_(open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC)) {}

  // The line of a mount, valid until the next call; empty where there is none, as for a mount outside
  // of what this process sees, or where it does not fit.
  std::string_view Line(int id) noexcept {
    if (!file_.valid()) return {};
    if (HasChanged()) kept_ = {};
    for (const Kept& kept : kept_) {
      if (kept.id == id) return {kept.text.data(), kept.length};
    }
    const std::string_view line = Find(id);
    if (!line.empty() && line.size() <= kKeptBytesMax) Keep(id, line);
    return line;
  }

 private:
  static constexpr size_t kKeptMax = 8;
  static constexpr size_t kKeptBytesMax = 1024;

  struct Kept {
    int id = -1;
    size_t length = 0;
    std::array<char, kKeptBytesMax> text;
  };

  // Whether a mount came, went or moved since the last call. Source: proc(5), /proc/[pid]/mounts.
  bool HasChanged() noexcept {
    pollfd changes = {.fd = file_.get(), .events = POLLPRI, .revents = 0};
    return poll(&changes, 1, 0) != 0;
  }

  void Keep(int id, std::string_view line) noexcept {
    Kept& kept = kept_[next_];
    next_ = (next_ + 1) % kept_.size();
    kept.id = id;
    kept.length = line.copy(kept.text.data(), kept.text.size());
  }

  std::string_view Find(int id) noexcept {
    if (lseek(file_.get(), 0, SEEK_SET) != 0) return {};
    std::array<char, 16> prefix;
    const int prefix_bytes = std::snprintf(prefix.data(), prefix.size(), "%d ", id);
    const std::string_view wanted(prefix.data(), static_cast<size_t>(prefix_bytes));
    size_t length = 0;
    // The rest of a line that did not fit.
    bool skipping = false;
    for (;;) {
      const ssize_t count = read(file_.get(), buffer_.data() + length, buffer_.size() - length);
      if (count <= 0) return {};
      length += static_cast<size_t>(count);
      std::string_view rest(buffer_.data(), length);
      for (size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
        const std::string_view line = rest.substr(0, end);
        if (!skipping && line.starts_with(wanted)) return line;
        skipping = false;
        rest.remove_prefix(end + 1);
      }
      if (rest.size() == buffer_.size()) {
        skipping = true;
        rest = {};
      }
      length = rest.size();
      if (length > 0) std::memmove(buffer_.data(), rest.data(), length);
    }
  }

  UniqueFd file_;
  std::array<Kept, kKeptMax> kept_;
  size_t next_ = 0;
  std::array<char, kMountLineBytesMax> buffer_;
};

void Tell(const Answer& answer, std::string_view mount_line) noexcept {
  std::array<char, kAnswerBytes> bytes;
  Put(bytes, 0, static_cast<uint32_t>(answer.error_number));
  Put(bytes, 4, static_cast<uint32_t>(answer.call));
  Put(bytes, 8, static_cast<uint32_t>(major(answer.device)));
  Put(bytes, 12, static_cast<uint32_t>(minor(answer.device)));
  Put(bytes, 16, static_cast<uint64_t>(answer.figures.f_frsize));
  Put(bytes, 24, static_cast<uint64_t>(answer.figures.f_blocks));
  Put(bytes, 32, static_cast<uint64_t>(answer.figures.f_bfree));
  Put(bytes, 40, static_cast<uint64_t>(answer.figures.f_bavail));
  Put(bytes, 48, static_cast<uint64_t>(answer.figures.f_files));
  Put(bytes, 56, static_cast<uint64_t>(answer.figures.f_ffree));
  Put(bytes, 64, static_cast<uint32_t>(mount_line.size()));
  WriteWhole(STDOUT_FILENO, {bytes.data(), bytes.size()});
  WriteWhole(STDOUT_FILENO, mount_line);
}

void Serve(const char* path, MountTable& mounts) noexcept {
  UniqueFd fd = OpenPath(path);
  const Answer answer = Probe(fd);
  std::string_view mount_line;
  if (answer.error_number == 0) {
    const std::optional<int> mount = MountId(fd);
    if (mount.has_value()) mount_line = mounts.Line(*mount);
  }
  // First: whoever hears the answer may unmount.
  fd.Close();
  Tell(answer, mount_line);
}

// The next request's path, ended by NUL; false at the end of input.
bool NextPath(std::span<char, PATH_MAX> path) noexcept {
  std::array<char, 2> prefix;
  const size_t prefix_bytes = ReadWhole(STDIN_FILENO, prefix);
  if (prefix_bytes == 0) return false;
  const size_t length = static_cast<unsigned char>(prefix[0]) |
                        static_cast<size_t>(static_cast<unsigned char>(prefix[1])) << 8;
  if (prefix_bytes < prefix.size() || length == 0 || length >= path.size()) _exit(kExitBadRequest);
  if (ReadWhole(STDIN_FILENO, path.first(length)) < length) _exit(kExitBadRequest);
  path[length] = '\0';
  if (std::strlen(path.data()) != length) _exit(kExitBadRequest);
  return true;
}

// Goes with evictd, also while it waits for a filesystem; not by what a terminal sends to all of a
// job; keeps nothing open that evictd's own start left open, however long it stays.
void Settle() noexcept {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGINT, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  constexpr long kCloseRangeNumber = 436;  // Linux 5.9; glibc has a function since 2.34
  syscall(kCloseRangeNumber, STDERR_FILENO + 1, ~0U, 0U);
}

}  // namespace

}  // namespace evictd

int main() {
  evictd::Settle();
  std::array<char, PATH_MAX> path;
  evictd::MountTable mounts;
  while (evictd::NextPath(path)) evictd::Serve(path.data(), mounts);
  return 0;
}
