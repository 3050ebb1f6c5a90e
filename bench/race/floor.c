/*
 * floor: the clock of the race, and the least that any agent can take.
 *
 *   floor NODE LEVEL [POD...]
 *
 * Registers an eventfd for memory.usage_in_bytes of the cgroup NODE (v1) crossing LEVEL bytes and
 * prints "ready". At each wake-up it notes CLOCK_MONOTONIC and how many events came as one. If PODs
 * are given, it first sends SIGKILL to every process in them, once, at the first wake-up: no
 * Node.js, no reading of usage, no choice of a victim. A real agent is measured against this.
 *
 * Wake-ups are printed, one line each, "NS EVENTS", only when QUIET_MS have passed without another:
 * whoever reads the line would otherwise wake up on the agent's processor while it works. When
 * standard input ends, what is left is printed and the process ends.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
  QUIET_MS = 200,
  /* Ahead of every priority that an agent may give itself, behind the kernel's own threads. */
  PRIORITY = 80,
  MAX_WAKE_UPS = 1024,
};

struct wake_up {
  uint64_t ns;
  uint64_t events; /* how many came as one */
};

static _Noreturn void fail(const char *what) {
  fprintf(stderr, "floor: %s: %s\n", what, strerror(errno));
  exit(1);
}

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int open_in(const char *cgroup, const char *file, int flags) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", cgroup, file);
  int fd = open(path, flags | O_CLOEXEC);
  if (fd < 0) fail(path);
  return fd;
}

static int register_threshold(const char *node, int usage_fd, const char *level) {
  int event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event_fd < 0) fail("eventfd");
  int control_fd = open_in(node, "cgroup.event_control", O_WRONLY);
  char line[128];
  int length = snprintf(line, sizeof line, "%d %d %s", event_fd, usage_fd, level);
  if (write(control_fd, line, (size_t)length) != length) fail("cgroup.event_control");
  close(control_fd);
  return event_fd;
}

/* Plain reads and no stdio: nothing is allocated between the event and the kill. */
static void kill_processes(const char *pod) {
  int fd = open_in(pod, "cgroup.procs", O_RDONLY);
  char text[4096];
  pid_t pid = 0;
  for (ssize_t length; (length = read(fd, text, sizeof text)) > 0;) {
    for (ssize_t i = 0; i < length; i++) {
      if (text[i] >= '0' && text[i] <= '9') {
        pid = pid * 10 + (text[i] - '0');
        continue;
      }
      /* 0 stands for a process outside our pid namespace, and would mean our own group here. */
      if (pid > 0) kill(pid, SIGKILL);
      pid = 0;
    }
  }
  close(fd);
}

static void stay_ahead(void) {
  if (mlockall(MCL_CURRENT | MCL_FUTURE) < 0) fprintf(stderr, "floor: not locked in memory\n");
  struct sched_param param = {.sched_priority = PRIORITY};
  if (sched_setscheduler(0, SCHED_FIFO, &param) < 0)
    fprintf(stderr, "floor: no real-time priority; latencies are only rough\n");
}

static void print_wake_ups(const struct wake_up *wake_ups, size_t from, size_t to) {
  for (size_t i = from; i < to; i++)
    printf("%" PRIu64 " %" PRIu64 "\n", wake_ups[i].ns, wake_ups[i].events);
  fflush(stdout);
}

static void watch(int event_fd, char *const *pods, int pod_count) {
  static struct wake_up wake_ups[MAX_WAKE_UPS];
  size_t noted = 0, printed = 0;
  struct pollfd fds[] = {
      {.fd = event_fd, .events = POLLIN},
      {.fd = STDIN_FILENO, .events = POLLIN},
  };
  for (;;) {
    int ready = poll(fds, 2, printed < noted ? QUIET_MS : -1);
    uint64_t ns = now_ns();
    if (ready < 0 && errno != EINTR) fail("poll");
    uint64_t events;
    if (ready > 0 && (fds[0].revents & POLLIN) && read(event_fd, &events, sizeof events) > 0) {
      if (noted == 0)
        for (int i = 0; i < pod_count; i++) kill_processes(pods[i]);
      if (noted < MAX_WAKE_UPS)
        wake_ups[noted++] = (struct wake_up){.ns = ns, .events = events};
      continue; /* an event is noted before the end of standard input is looked at */
    }
    if (ready >= 0) {
      print_wake_ups(wake_ups, printed, noted);
      printed = noted;
    }
    if (ready > 0 && fds[1].revents != 0) return;
  }
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: floor NODE LEVEL [POD...]\n");
    return 2;
  }
  int usage_fd = open_in(argv[1], "memory.usage_in_bytes", O_RDONLY);
  int event_fd = register_threshold(argv[1], usage_fd, argv[2]);
  stay_ahead();
  puts("ready");
  fflush(stdout);
  watch(event_fd, argv + 3, argc - 3);
  return 0;
}
