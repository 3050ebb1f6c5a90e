"""A process whose main thread ends while another goes on.

  python3 dead-leader.py CGROUP

Joins the cgroup, ends its main thread, prints "alone", and then takes as many bytes as each line of
standard input says.
"""
import ctypes
import os
import sys
import threading
import time

SYS_EXIT = 60 if os.uname().machine == "x86_64" else 93
held = []


def go_on():
    while open("/proc/self/task/%d/stat" % os.getpid()).read().rsplit(")", 1)[1].split()[0] != "Z":
        time.sleep(0.001)
    print("alone", flush=True)
    for line in sys.stdin:
        for _ in range(int(line) // 2**20):
            held.append(bytearray(b"x") * 2**20)
        print("held", flush=True)


with open(f"{sys.argv[1]}/cgroup.procs", "w") as procs:
    procs.write(str(os.getpid()))
threading.Thread(target=go_on).start()
ctypes.CDLL(None).syscall(SYS_EXIT, 0)
