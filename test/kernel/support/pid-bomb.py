"""Takes all PIDs that it can get.

  python3 pid-bomb.py fork|thread SECONDS CGROUP...

Joins the cgroups, prints "ready", and once a line comes on standard input starts processes or
threads as fast as they are given, for SECONDS at most, whatever becomes of the test.
"""
import os
import signal
import sys
import threading
import time

kind, seconds, cgroups = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
for cgroup in cgroups:
    with open(f"{cgroup}/cgroup.procs", "w") as procs:
        procs.write(str(os.getpid()))
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
threading.stack_size(64 * 1024)
print("ready", flush=True)
sys.stdin.readline()
end = time.monotonic() + seconds
while time.monotonic() < end:
    try:
        if kind == "thread":
            threading.Thread(target=time.sleep, args=(seconds,), daemon=True).start()
        elif os.fork() == 0:
            time.sleep(seconds)
            os._exit(0)
    except (OSError, RuntimeError):
        time.sleep(0.001)  # pids.max
