/*
 * leak: a pod that leaks, and that leaves a record of how far it got.
 *
 *   leak RECORD BYTES RATE small|huge CGROUP...
 *
 * Joins every CGROUP in the order given, then makes BYTES of fresh anonymous memory resident, at
 * RATE megabytes (10^6 bytes) a second or, with 0, as fast as the kernel hands out pages. `small`
 * takes 4 KiB pages. `huge` asks for 2 MiB pages, with which one process takes gigabytes a second.
 * When all is resident it waits to be killed.
 *
 * RECORD is a file mapped into memory, so what was stored before a SIGKILL can be read after it:
 *   u64 count; u64 reserved; count times { u64 CLOCK_MONOTONIC in ns; u64 bytes resident }
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000LL

enum {
  PAGE_BYTES = 4096,
  HUGE_PAGE_BYTES = 2 << 20,
  /* Some 10 us at the full speed of small pages: fine enough for a latency told in hundredths of a
     millisecond, and coarse enough that reading the clock does not slow the leak. */
  STAMP_BYTES = 16 << 10,
};

struct stamp {
  uint64_t ns;
  uint64_t bytes;
};

struct record {
  uint64_t count;
  uint64_t reserved;
  struct stamp stamps[];
};

static _Noreturn void fail(const char *what) {
  fprintf(stderr, "leak: %s: %s\n", what, strerror(errno));
  exit(1);
}

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static void sleep_until(int64_t ns) {
  struct timespec t = {.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {
  }
}

/* Faulted in before the process joins its cgroup, so that the record is not charged there. */
static struct record *map_record(const char *path, size_t bytes_to_leak) {
  size_t stamps = bytes_to_leak / STAMP_BYTES + 1;
  size_t size = sizeof(struct record) + stamps * sizeof(struct stamp);
  int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, (off_t)size) < 0) fail(path);
  struct record *record =
      mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
  if (record == MAP_FAILED) fail("mmap of the record");
  /* MAP_POPULATE may give up silently; a store cannot. */
  memset(record, 0, size);
  close(fd);
  return record;
}

/* The count is stored last: a kill between the stores leaves only whole stamps behind it. */
static int64_t stamp(struct record *record, size_t bytes) {
  int64_t ns = now_ns();
  record->stamps[record->count] = (struct stamp){.ns = (uint64_t)ns, .bytes = bytes};
  __atomic_store_n(&record->count, record->count + 1, __ATOMIC_RELEASE);
  return ns;
}

static char *map_memory(size_t bytes, int huge) {
  size_t slack = HUGE_PAGE_BYTES; /* room to start on a huge page's boundary */
  char *memory = mmap(NULL, bytes + slack, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) fail("mmap of the memory to leak");
  char *aligned = memory + (-(uintptr_t)memory & (HUGE_PAGE_BYTES - 1));
  /* EINVAL means a kernel without huge pages: right for `small`, an error for `huge`. */
  if (madvise(aligned, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) < 0 && huge)
    fail("madvise(MADV_HUGEPAGE)");
  return aligned;
}

/* A virtual machine gets real memory only when it first touches it. Taking and freeing as much
   before joining leaves pages that are already backed; without this the leak runs at the speed of
   the host's page faults, and no headroom would ever be too small. */
static void warm_up(size_t bytes) {
  char *memory = map_memory(bytes, 1);
  for (size_t at = 0; at < bytes; at += PAGE_BYTES) ((volatile char *)memory)[at] = 1;
  munmap(memory, bytes);
}

static void join(const char *cgroup) {
  char path[4096], pid[32];
  snprintf(path, sizeof path, "%s/cgroup.procs", cgroup);
  int length = snprintf(pid, sizeof pid, "%d", getpid());
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, pid, (size_t)length) != length) fail(path);
  close(fd);
}

static void leak(char *memory, size_t bytes, double bytes_per_s, struct record *record) {
  int64_t start_ns = now_ns();
  for (size_t at = 0; at < bytes; at += PAGE_BYTES) {
    ((volatile char *)memory)[at] = 1;
    if (at % STAMP_BYTES != 0) continue;
    int64_t ns = stamp(record, at + PAGE_BYTES);
    if (bytes_per_s <= 0) continue;
    int64_t due_ns = start_ns + (int64_t)((double)at / bytes_per_s * NS_PER_S);
    if (due_ns > ns) sleep_until(due_ns);
  }
}

int main(int argc, char **argv) {
  if (argc < 6 || (strcmp(argv[4], "huge") != 0 && strcmp(argv[4], "small") != 0)) {
    fprintf(stderr, "usage: leak RECORD BYTES RATE small|huge CGROUP...\n");
    return 2;
  }
  size_t bytes = strtoull(argv[2], NULL, 10);
  double bytes_per_s = strtod(argv[3], NULL) * 1e6;
  int huge = strcmp(argv[4], "huge") == 0;

  /* No leak outlives a race that was itself killed. */
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  /* The default slack of 50 us is a third of the pause between two stamps at 100 MB/s. */
  prctl(PR_SET_TIMERSLACK, 1UL);

  struct record *record = map_record(argv[1], bytes);
  if (huge) warm_up(bytes);
  char *memory = map_memory(bytes, huge);
  for (int i = 5; i < argc; i++) join(argv[i]);
  leak(memory, bytes, bytes_per_s, record);
  pause();
  return 0;
}
