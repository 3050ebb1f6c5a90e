// evictd-walk: adds up what lies below directories, and what is deleted and still open, so that evictd
// itself never reads a directory that somebody else fills. A program of its own that knows neither Node
// nor eviction; src/sources/walk-helper.ts runs it. It has the lowest priority for processor and disk.
//
// Standard input, for each request:
//
//    0  u16  0: what lies below a path; 1: what is deleted and still open
//    2  u16  for how long at most, ms of processor time
//    4  u32  how many entries are looked at at most
//    8  u32  for how long at most, ms
//   12  u16  length of a root in bytes, 14  u16  length of the path below it; both 0 for kind 1
//   16  the root, then the path below it: relative, no part of it empty, "." or ".."
//
// In the root links are followed; below it none is.
//
// Standard output, for each request, in order:
//
//    0  u32  error number of the call that failed, 0 for none
//    4  u32  that call, as in Call
//    8  u32  what was cut short, as in Cut: then the figures are the least that there is
//   12  u32  major, 16  u32  minor number of the device (st_dev) that was walked
//   20  u32  f_type of its filesystem
//   24  u64  bytes of the blocks in use, 32  u64  inodes
//   40  u32  length of what follows: for kind 1 a record of 24 bytes for each process and device:
//            u32 pid, u32 major, u32 minor, u32 0, u64 bytes
//
// All little-endian. A mount below is left out, as is what lies on it; an inode with several names counts
// once. Ends with 0 at the end of input and with 2 at a request that is none.
#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "unique_fd.h"

namespace evictd {

namespace {

constexpr int kExitBroken = 1;
constexpr int kExitBadRequest = 2;

constexpr size_t kRequestBytes = 16;
constexpr size_t kAnswerBytes = 44;
constexpr size_t kRecordBytes = 24;
// How much is remembered of names of directories that are to be read.
constexpr size_t kPendingBytesMax = size_t{64} << 20;
// How many records are told: those of the most bytes.
constexpr size_t kRecordsMax = 1000;
// How many inodes are remembered as counted; each takes some 60 bytes.
constexpr size_t kSeenMax = 200'000;
// How often a walk is begun in which what is above the directory that was read has been moved away.
constexpr int kTriesMax = 3;
// How long it goes on behind everybody else. On a node that is busy that gets next to no processor, and figures
// are awaited for some seconds.
constexpr int64_t kPatientMs = 3000;
// How many entries pass between two looks at the clock.
constexpr uint32_t kEntriesPerLook = 256;
// st_blocks counts in these whatever the filesystem has. Source: stat(2).
constexpr uint64_t kBlockBytes = 512;

enum class Kind : uint16_t { kBelow = 0, kDeleted = 1 };
enum class Call : uint32_t { kNone = 0, kOpen = 1, kStat = 2, kStatfs = 3, kRead = 4 };
enum class Cut : uint32_t { kNone = 0, kEntries = 1, kMoved = 2, kTime = 3 };

using Inode = std::pair<dev_t, ino_t>;

struct Request {
  Kind kind = Kind::kBelow;
  uint32_t limit_cpu_ms = 0;
  uint32_t entries = 0;
  uint32_t limit_ms = 0;
  std::string root;
  std::string below;
};

struct Record {
  pid_t pid;
  dev_t device;
  uint64_t bytes;
};

struct Answer {
  int error_number = 0;
  Call call = Call::kNone;
  Cut cut = Cut::kNone;
  dev_t device = 0;
  uint32_t type = 0;
  uint64_t bytes = 0;
  uint64_t inodes = 0;
  std::vector<Record> records;
};

Answer Failed(Call call) { return {.error_number = errno, .call = call, .records = {}}; }

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

template <typename Integer>
Integer Get(std::span<const char> bytes, size_t offset) noexcept {
  uint64_t value = 0;
  for (size_t index = 0; index < sizeof(Integer); ++index) {
    value |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[offset + index])) << (8 * index);
  }
  return static_cast<Integer>(value);
}

int64_t ReadMs(clockid_t clock) noexcept {
  timespec now = {};
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

// Behind everybody else, or where that is too slow behind most.
void Yield(bool to_all) noexcept {
  constexpr sched_param kNone = {.sched_priority = 0};
  sched_setscheduler(0, to_all ? SCHED_IDLE : SCHED_OTHER, &kNone);
  setpriority(PRIO_PROCESS, 0, to_all ? 19 : 10);
  constexpr int kWhoProcess = 1;
  constexpr int kIdleClass = 3 << 13;
  constexpr int kLowestOfUsual = 2 << 13 | 7;
  syscall(SYS_ioprio_set, kWhoProcess, 0, to_all ? kIdleClass : kLowestOfUsual);
}

// What may still be looked at.
class Budget {
 public:
  explicit Budget(const Request& request) noexcept
      : entries_(request.entries),
        begun_at_ms_(ReadMs(CLOCK_MONOTONIC)),
        ends_at_ms_(begun_at_ms_ + request.limit_ms),
        cpu_ends_at_ms_(ReadMs(CLOCK_PROCESS_CPUTIME_ID) + request.limit_cpu_ms) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;
  ~Budget() {
    if (is_hurried_) Yield(true);
  }

  // Takes one entry; says why there is none left.
  Cut Take() noexcept {
    if (cut_ != Cut::kNone) return cut_;
    if (taken_ >= entries_) return cut_ = Cut::kEntries;
    if (taken_++ % kEntriesPerLook == 0 && IsLate()) return cut_ = Cut::kTime;
    return Cut::kNone;
  }

 private:
  bool IsLate() noexcept {
    const int64_t now_ms = ReadMs(CLOCK_MONOTONIC);
    if (!is_hurried_ && now_ms - begun_at_ms_ >= kPatientMs) {
      is_hurried_ = true;
      Yield(false);
    }
    return now_ms >= ends_at_ms_ || ReadMs(CLOCK_PROCESS_CPUTIME_ID) >= cpu_ends_at_ms_;
  }

  uint32_t entries_;
  int64_t begun_at_ms_;
  int64_t ends_at_ms_;
  int64_t cpu_ends_at_ms_;
  bool is_hurried_ = false;
  uint32_t taken_ = 0;
  Cut cut_ = Cut::kNone;
};

// A directory that is being read.
class Directory {
 public:
  // Takes the descriptor.
  explicit Directory(UniqueFd fd) noexcept {
    if (!fd.valid()) return;
    directory_ = fdopendir(fd.get());
    // Closed with the directory from here on.
    if (directory_ != nullptr) fd.Release();
  }
  Directory(Directory&& other) noexcept : directory_(std::exchange(other.directory_, nullptr)) {}
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  Directory& operator=(Directory&&) = delete;
  ~Directory() {
    if (directory_ != nullptr) closedir(directory_);
  }

  bool valid() const noexcept { return directory_ != nullptr; }
  int fd() const noexcept { return dirfd(directory_); }

  // The next name that is not the directory's own or its parent's; null at the end.
  const char* Next() noexcept {
    for (;;) {
      const dirent* const entry = readdir(directory_);
      if (entry == nullptr) return nullptr;
      const std::string_view name(entry->d_name);
      if (name != "." && name != "..") return entry->d_name;
    }
  }

 private:
  DIR* directory_ = nullptr;
};

// The path below the root, one part after the other, so that no link leads away from it.
UniqueFd OpenBelow(const Request& request) noexcept {
  UniqueFd fd(open(request.root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  std::string_view rest(request.below);
  while (fd.valid() && !rest.empty()) {
    const std::string part(rest.substr(0, rest.find('/')));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC | (rest.empty() ? 0 : O_DIRECTORY);
    fd = UniqueFd(openat(fd.get(), part.c_str(), flags));
  }
  return fd;
}

// Adds up what lies below a path. Of the directories on the way to the one that is read only the names are kept,
// and what they are: the way back is "..", if that is the same directory still. So no tree is too deep.
class Walk {
 public:
  explicit Walk(const Request& request) : request_(request), budget_(request) {}

  Answer Run() {
    top_ = OpenBelow(request_);
    if (!top_.valid()) return Failed(Call::kOpen);
    struct stat status = {};
    if (fstat(top_.get(), &status) != 0) return Failed(Call::kStat);
    if (S_ISLNK(status.st_mode)) {
      errno = ELOOP;
      return Failed(Call::kOpen);
    }
    struct statfs figures = {};
    if (fstatfs(top_.get(), &figures) != 0) return Failed(Call::kStatfs);
    answer_.device = status.st_dev;
    answer_.type = static_cast<uint32_t>(figures.f_type);
    for (int tries = 0; tries < kTriesMax; ++tries) {
      Begin();
      Count(status);
      if (!S_ISDIR(status.st_mode)) break;
      // Once more: what is opened for its place alone cannot be read.
      if (!Read(top_.get(), ".", ".")) return Failed(Call::kRead);
      while (!levels_.empty() && !is_over_) Step();
      if (answer_.cut != Cut::kMoved) break;
    }
    return std::move(answer_);
  }

 private:
  // A directory that was read, and those in it that were not yet.
  struct Level {
    std::string name;
    Inode inode;
    std::vector<std::string> pending;
  };

  void Begin() {
    answer_.cut = Cut::kNone;
    answer_.bytes = 0;
    answer_.inodes = 0;
    levels_.clear();
    pending_bytes_ = 0;
    seen_.clear();
  }

  static UniqueFd OpenDirectory(int at, const char* name, int flags) noexcept {
    return UniqueFd(openat(at, name, flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  }

  // Adds up what is in a directory, which is the current one from here on. False where it cannot be read.
  bool Read(int at, const char* path, std::string name) {
    constexpr int kFlags = O_RDONLY | O_NONBLOCK;
    UniqueFd fd = OpenDirectory(at, path, kFlags | O_NOATIME);
    if (!fd.valid() && errno == EPERM) fd = OpenDirectory(at, path, kFlags);
    struct stat status = {};
    if (!fd.valid() || fstat(fd.get(), &status) != 0) return false;
    // It may have been mounted over since.
    if (status.st_dev != answer_.device) return true;
    UniqueFd current(fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
    Directory directory(std::move(fd));
    if (!directory.valid() || !current.valid()) return false;
    current_ = std::move(current);
    levels_.push_back({std::move(name), Inode(status.st_dev, status.st_ino), {}});
    while (const char* const entry = directory.Next()) {
      if (!Take()) break;
      Entry(directory.fd(), entry);
    }
    return true;
  }

  void Entry(int at, const char* name) {
    struct stat status = {};
    constexpr int kFlags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT;
    // What goes meanwhile, or cannot be looked at, is left out.
    if (fstatat(at, name, &status, kFlags) != 0 || status.st_dev != answer_.device) return;
    Count(status);
    if (!S_ISDIR(status.st_mode)) return;
    const size_t bytes = sizeof(std::string) + std::strlen(name);
    if (pending_bytes_ + bytes > kPendingBytesMax) {
      answer_.cut = Cut::kEntries;
      return;
    }
    pending_bytes_ += bytes;
    levels_.back().pending.emplace_back(name);
  }

  // Into the next directory, or back to the one above.
  void Step() {
    std::vector<std::string>& pending = levels_.back().pending;
    if (!pending.empty()) {
      const std::string name = std::move(pending.back());
      pending.pop_back();
      pending_bytes_ -= sizeof(std::string) + name.size();
      Read(current_.get(), name.c_str(), name);
      return;
    }
    levels_.pop_back();
    // Where somebody has moved it the way back is from the top.
    if (!levels_.empty() && !Climb() && Take()) Descend();
  }

  bool Climb() noexcept {
    UniqueFd above = OpenDirectory(current_.get(), "..", O_PATH);
    if (!Is(above, levels_.back().inode)) return false;
    current_ = std::move(above);
    return true;
  }

  // From the top, as far as all is as it was: what is to be read below what has been moved cannot be found.
  void Descend() {
    current_ = OpenDirectory(top_.get(), ".", O_PATH);
    size_t depth = 1;
    while (depth < levels_.size()) {
      if (!Take()) return;
      UniqueFd next = OpenDirectory(current_.get(), levels_[depth].name.c_str(), O_PATH);
      if (!Is(next, levels_[depth].inode)) break;
      current_ = std::move(next);
      ++depth;
    }
    if (depth == levels_.size()) return;
    answer_.cut = Cut::kMoved;
    levels_.resize(depth);
  }

  static bool Is(const UniqueFd& fd, const Inode& inode) noexcept {
    struct stat status = {};
    return fd.valid() && fstat(fd.get(), &status) == 0 &&
           Inode(status.st_dev, status.st_ino) == inode;
  }

  bool Take() noexcept {
    const Cut cut = budget_.Take();
    if (cut == Cut::kNone) return true;
    answer_.cut = cut;
    is_over_ = true;
    return false;
  }

  void Count(const struct stat& status) {
    const bool has_names = status.st_nlink > 1 && !S_ISDIR(status.st_mode);
    if (has_names && seen_.size() >= kSeenMax) {
      answer_.cut = Cut::kEntries;
      return;
    }
    if (has_names && !seen_.emplace(status.st_dev, status.st_ino).second) return;
    answer_.bytes += static_cast<uint64_t>(status.st_blocks) * kBlockBytes;
    answer_.inodes += 1;
  }

  const Request& request_;
  Budget budget_;
  Answer answer_;
  UniqueFd top_;
  // The directory of the last level.
  UniqueFd current_;
  std::vector<Level> levels_;
  size_t pending_bytes_ = 0;
  bool is_over_ = false;
  // Of inodes with several names alone.
  std::set<Inode> seen_;
};

bool IsMemory(uint32_t type) noexcept {
  return type == TMPFS_MAGIC || type == RAMFS_MAGIC || type == HUGETLBFS_MAGIC;
}

// Adds up the files that have no name any more and that processes keep open.
class Deleted {
 public:
  explicit Deleted(const Request& request) : budget_(request) {}

  Answer Run() {
    Directory processes(UniqueFd(open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
    if (!processes.valid()) return Failed(Call::kOpen);
    while (const char* const name = processes.Next()) {
      const bool is_number = std::strspn(name, "0123456789") == std::strlen(name);
      if (is_number) Process(processes.fd(), name);
      if (answer_.cut != Cut::kNone) break;
    }
    for (const auto& [of, bytes] : bytes_) answer_.records.push_back({of.first, of.second, bytes});
    std::sort(answer_.records.begin(), answer_.records.end(),
              [](const Record& one, const Record& other) { return one.bytes > other.bytes; });
    if (answer_.records.size() > kRecordsMax) answer_.records.resize(kRecordsMax);
    return std::move(answer_);
  }

 private:
  void Process(int processes, const char* pid) {
    std::array<char, 32> path;
    std::snprintf(path.data(), path.size(), "%.16s/fd", pid);
    Directory open_files(
        UniqueFd(openat(processes, path.data(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
    // It has ended, or is somebody else's.
    if (!open_files.valid()) return;
    while (const char* const name = open_files.Next()) {
      answer_.cut = budget_.Take();
      if (answer_.cut != Cut::kNone) return;
      if (IsDeleted(open_files.fd(), name)) Count(open_files.fd(), name, std::atoi(pid));
    }
  }

  // By its name alone, which asks no filesystem.
  static bool IsDeleted(int at, const char* name) noexcept {
    constexpr std::string_view kSuffix = " (deleted)";
    std::array<char, PATH_MAX> target;
    const ssize_t length = readlinkat(at, name, target.data(), target.size());
    if (length <= 0) return false;
    const std::string_view text(target.data(), static_cast<size_t>(length));
    return text.front() == '/' && !text.starts_with("/memfd:") && text.ends_with(kSuffix);
  }

  void Count(int at, const char* name, pid_t pid) {
    const UniqueFd fd(openat(at, name, O_PATH | O_CLOEXEC));
    struct stat status = {};
    struct statfs figures = {};
    if (!fd.valid() || fstat(fd.get(), &status) != 0) return;
    if (!S_ISREG(status.st_mode) || status.st_nlink != 0) return;
    if (fstatfs(fd.get(), &figures) != 0 || IsMemory(static_cast<uint32_t>(figures.f_type))) return;
    if (seen_.size() >= kSeenMax) return;
    if (!seen_.emplace(status.st_dev, status.st_ino).second) return;
    const uint64_t bytes = static_cast<uint64_t>(status.st_blocks) * kBlockBytes;
    answer_.bytes += bytes;
    answer_.inodes += 1;
    bytes_[{pid, status.st_dev}] += bytes;
  }

  Budget budget_;
  Answer answer_;
  std::set<Inode> seen_;
  std::map<std::pair<pid_t, dev_t>, uint64_t> bytes_;
};

void Tell(const Answer& answer) {
  std::string bytes(kAnswerBytes + answer.records.size() * kRecordBytes, '\0');
  Put<uint32_t>(bytes, 0, static_cast<uint32_t>(answer.error_number));
  Put<uint32_t>(bytes, 4, static_cast<uint32_t>(answer.call));
  Put<uint32_t>(bytes, 8, static_cast<uint32_t>(answer.cut));
  Put<uint32_t>(bytes, 12, major(answer.device));
  Put<uint32_t>(bytes, 16, minor(answer.device));
  Put<uint32_t>(bytes, 20, answer.type);
  Put<uint64_t>(bytes, 24, answer.bytes);
  Put<uint64_t>(bytes, 32, answer.inodes);
  Put<uint32_t>(bytes, 40, static_cast<uint32_t>(bytes.size() - kAnswerBytes));
  size_t offset = kAnswerBytes;
  for (const Record& record : answer.records) {
    Put<uint32_t>(bytes, offset, static_cast<uint32_t>(record.pid));
    Put<uint32_t>(bytes, offset + 4, major(record.device));
    Put<uint32_t>(bytes, offset + 8, minor(record.device));
    Put<uint64_t>(bytes, offset + 16, record.bytes);
    offset += kRecordBytes;
  }
  WriteWhole(STDOUT_FILENO, bytes);
}

// Whether a path leads nowhere else: relative, each part a name.
bool IsBelow(std::string_view path) noexcept {
  while (!path.empty()) {
    const size_t end = path.find('/');
    const std::string_view part = path.substr(0, end);
    if (part.empty() || part == "." || part == "..") return false;
    if (end == std::string_view::npos) return true;
    path.remove_prefix(end + 1);
    if (path.empty()) return false;
  }
  return true;
}

bool IsRequest(const Request& request) noexcept {
  if (request.root.find('\0') != std::string::npos) return false;
  if (request.below.find('\0') != std::string::npos) return false;
  if (request.kind == Kind::kDeleted) return request.root.empty() && request.below.empty();
  return request.kind == Kind::kBelow && request.root.starts_with('/') && IsBelow(request.below);
}

// False at the end of input.
bool NextRequest(Request& request) {
  std::array<char, kRequestBytes> header;
  const size_t header_bytes = ReadWhole(STDIN_FILENO, header);
  if (header_bytes == 0) return false;
  if (header_bytes < header.size()) _exit(kExitBadRequest);
  request.kind = static_cast<Kind>(Get<uint16_t>(header, 0));
  request.limit_cpu_ms = Get<uint16_t>(header, 2);
  request.entries = Get<uint32_t>(header, 4);
  request.limit_ms = Get<uint32_t>(header, 8);
  for (const auto& [text, offset] : {std::pair{&request.root, 12}, std::pair{&request.below, 14}}) {
    text->resize(Get<uint16_t>(header, static_cast<size_t>(offset)));
    if (text->size() >= PATH_MAX) _exit(kExitBadRequest);
    if (ReadWhole(STDIN_FILENO, *text) < text->size()) _exit(kExitBadRequest);
  }
  if (!IsRequest(request)) _exit(kExitBadRequest);
  return true;
}

// Behind everybody else, whatever evictd itself has; goes with evictd, as evictd-fs does.
void Settle() noexcept {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGINT, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  constexpr long kCloseRangeNumber = 436;  // Linux 5.9; glibc has a function since 2.34
  syscall(kCloseRangeNumber, STDERR_FILENO + 1, ~0U, 0U);
  Yield(true);
}

}  // namespace

}  // namespace evictd

int main() {
  evictd::Settle();
  evictd::Request request;
  while (evictd::NextRequest(request)) {
    const bool is_below = request.kind == evictd::Kind::kBelow;
    evictd::Tell(is_below ? evictd::Walk(request).Run() : evictd::Deleted(request).Run());
  }
  return 0;
}
