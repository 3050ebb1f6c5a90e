"""Processes that are never the same: each forks a child that goes on, and ends.

  python3 fork-storm.py WIDTH SECONDS CGROUP...

Joins the cgroups first, then WIDTH chains run for SECONDS at most, whatever becomes of the test.
Prints "storm" when they run. What ends is reaped by the first process, which stays outside and ends
when standard input is closed.
"""
import ctypes
import os
import signal
import sys
import time

width, seconds, cgroups = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]
PR_SET_CHILD_SUBREAPER = 36
end = time.monotonic() + seconds

ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def chain():
    while time.monotonic() < end:
        try:
            if os.fork() > 0:
                os._exit(0)
        except OSError:
            time.sleep(0.001)  # pids.max
    os._exit(0)


if os.fork() == 0:
    for cgroup in cgroups:
        with open(f"{cgroup}/cgroup.procs", "w") as procs:
            procs.write(str(os.getpid()))
    for _ in range(width):
        if os.fork() == 0:
            chain()
    print("storm", flush=True)
    chain()
sys.stdin.read()
