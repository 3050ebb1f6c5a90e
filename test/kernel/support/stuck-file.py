"""A FUSE server that does not answer.

  python3 stuck-file.py DIRECTORY [read|statfs|unread|nothing]

Mounts itself on DIRECTORY, prints "mounted", then "read" for each READ that it took and never
answers: a file whose reader cannot be killed. With "statfs" it is the STATFS, printed so. Once the
server has taken a request, its caller waits in state D. With "unread" it takes nothing but INIT, and
the callers can be killed. With "nothing" it answers all.

The line "answer" on standard input has it answer what it took, and whatever comes then. It unmounts
and ends when standard input is closed; who waits is let go with the connection.
"""
import ctypes
import os
import select
import struct
import sys

LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, INIT = 1, 2, 3, 14, 15, 17, 26
INTERRUPT, BATCH_FORGET = 36, 42
ENOSYS = 38
DIRECT_IO = 1  # otherwise the reader waits for a page, which a KILL ends
DIRECTORY_MODE, FILE_MODE = 0o40755, 0o100644

directory = sys.argv[1]
stuck = sys.argv[2] if len(sys.argv) > 2 else "read"
withheld = {"read": READ, "statfs": STATFS}.get(stuck)
libc = ctypes.CDLL(None, use_errno=True)


def check(result):
    if result != 0:
        raise OSError(ctypes.get_errno(), "mount")


def attributes(node):
    mode = DIRECTORY_MODE if node == 1 else FILE_MODE
    return struct.pack("<6Q10I", node, 4096, 8, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def answer(opcode, node, body):
    """The body of the answer, or an error."""
    if opcode == INIT:
        major, minor, readahead, _ = struct.unpack_from("<4I", body)
        return struct.pack("<4I2H2I2H8I", 7, min(minor, 31), readahead, 0, 1, 1, 4096, 1, 1, 0, *[0] * 8)
    if opcode == LOOKUP:
        return struct.pack("<4Q2I", 2, 0, 3600, 3600, 0, 0) + attributes(2)
    if opcode == GETATTR:
        return struct.pack("<Q2I", 3600, 0, 0) + attributes(node)
    if opcode == OPEN:
        return struct.pack("<Q2I", 0, DIRECT_IO, 0)
    if opcode == READ:
        return b""
    if opcode == STATFS:
        # 1,000 blocks of 512 bytes, 250 available; no inode counts. The other unit is not theirs.
        return struct.pack("<5Q4I6I", 1000, 300, 250, 0, 0, 65536, 255, 512, 0, *[0] * 6)
    return ENOSYS


fuse = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0".encode()
check(libc.mount(b"evictd-test", directory.encode(), b"fuse.evictd-test", 6, options))
print("mounted", flush=True)
taken = []


def reply(opcode, unique, node, request):
    body = answer(opcode, node, request[40:])
    error, data = (-body, b"") if isinstance(body, int) else (0, body)
    try:
        os.write(fuse, struct.pack("<IiQ", 16 + len(data), error, unique) + data)
    except FileNotFoundError:
        pass  # who asked has given up


try:
    while True:
        waited = [sys.stdin] if stuck == "deaf" else [fuse, sys.stdin]
        ready, _, _ = select.select(waited, [], [])
        if sys.stdin in ready:
            if os.read(0, 4096) == b"":
                break
            stuck, withheld = "nothing", None
            for request in taken:
                reply(*request)
            taken.clear()
            continue
        request = os.read(fuse, 1 << 17)
        _, opcode, unique, node = struct.unpack_from("<2I2Q", request)
        if opcode in (FORGET, INTERRUPT, BATCH_FORGET):
            continue
        if opcode == withheld:
            taken.append((opcode, unique, node, request))
            print(stuck, flush=True)
            continue
        reply(opcode, unique, node, request)
        if opcode == INIT and stuck == "unread":
            stuck = "deaf"
finally:
    libc.umount2(directory.encode(), 2)  # MNT_DETACH
