/*
 * swing: crosses a level of memory usage as fast as the kernel lets it.
 *
 *   swing CGROUP NODE BASE SWING MILLISECONDS
 *
 * Joins CGROUP, takes memory until the usage of the cgroup NODE is BASE, and prints "ready". At the
 * first byte of its standard input it takes SWING bytes in huge pages and gives them back, again
 * and again for so long, and prints how often. Then it waits until its input ends.
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

enum { PAGE_BYTES = 4096, HUGE_PAGE_BYTES = 2 << 20, STEP_BYTES = 256 << 10, SWINGS_PER_FILL = 64 };

static _Noreturn void fail(const char *what) {
  fprintf(stderr, "swing: %s: %s\n", what, strerror(errno));
  exit(1);
}

static long long now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

static void join(const char *cgroup) {
  char path[4096];
  snprintf(path, sizeof path, "%s/cgroup.procs", cgroup);
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, "0", 1) != 1) fail(path);
  close(fd);
}

static long long usage(int fd) {
  char text[32] = {0};
  if (pread(fd, text, sizeof text - 1, 0) <= 0) fail("reading the usage");
  return atoll(text);
}

static char *map(size_t bytes, int advice) {
  char *memory = mmap(NULL, bytes + HUGE_PAGE_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) fail("mmap");
  char *aligned = memory + (-(uintptr_t)memory & (HUGE_PAGE_BYTES - 1));
  if (madvise(aligned, bytes, advice) < 0) fail("madvise");
  return aligned;
}

static void touch(char *memory, size_t bytes, size_t step) {
  for (size_t at = 0; at < bytes; at += step) ((volatile char *)memory)[at] = 1;
}

struct filling {
  int usage_fd;
  long long base;
  char *memory;
  long long at;
};

static struct filling prepare(const char *node, long long base) {
  char path[4096];
  snprintf(path, sizeof path, "%s/memory.usage_in_bytes", node);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail(path);
  return (struct filling){fd, base, map((size_t)base + STEP_BYTES, MADV_NOHUGEPAGE), 0};
}

/* Up to the base; again when somebody else has given memory back. */
static void fill(struct filling *filling) {
  for (; usage(filling->usage_fd) < filling->base && filling->at < filling->base;
       filling->at += STEP_BYTES)
    touch(filling->memory + filling->at, STEP_BYTES, PAGE_BYTES);
}

int main(int argc, char **argv) {
  if (argc != 6) {
    fprintf(stderr, "usage: swing CGROUP NODE BASE SWING MILLISECONDS\n");
    return 2;
  }
  size_t bytes = strtoull(argv[4], NULL, 10);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  join(argv[1]);
  struct filling filling = prepare(argv[2], atoll(argv[3]));
  fill(&filling);
  char *memory = map(bytes, MADV_HUGEPAGE);
  char byte;
  printf("ready\n");
  fflush(stdout);
  if (read(STDIN_FILENO, &byte, 1) != 1) return 0;
  long long end_ms = now_ms() + atoll(argv[5]);
  long long swings = 0;
  for (; now_ms() < end_ms; swings += 1) {
    touch(memory, bytes, HUGE_PAGE_BYTES);
    if (madvise(memory, bytes, MADV_DONTNEED) < 0) fail("madvise(MADV_DONTNEED)");
    if (swings % SWINGS_PER_FILL == 0) fill(&filling);
  }
  printf("%lld\n", swings);
  fflush(stdout);
  while (read(STDIN_FILENO, &byte, 1) == 1) {
  }
  return 0;
}
