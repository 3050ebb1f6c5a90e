"""A file whose reader cannot be killed: a FUSE server that answers all but READ.

  python3 stuck-file.py DIRECTORY

Mounts itself on DIRECTORY, prints "mounted", then "read" for each READ that it took and never
answers. Once the server has taken a request, its caller waits in state D. Unmounts and ends when
standard input is closed; the reader is let go with the connection.
"""
import ctypes
import os
import select
import struct
import sys

LOOKUP, FORGET, GETATTR, OPEN, READ, INIT, INTERRUPT, BATCH_FORGET = 1, 2, 3, 14, 15, 26, 36, 42
ENOSYS = 38
DIRECT_IO = 1  # otherwise the reader waits for a page, which a KILL ends
DIRECTORY_MODE, FILE_MODE = 0o40755, 0o100644

directory = sys.argv[1]
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
    return ENOSYS


fuse = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0".encode()
check(libc.mount(b"evictd-test", directory.encode(), b"fuse.evictd-test", 6, options))
print("mounted", flush=True)
try:
    while True:
        ready, _, _ = select.select([fuse, sys.stdin], [], [])
        if sys.stdin in ready:
            break
        request = os.read(fuse, 1 << 17)
        _, opcode, unique, node = struct.unpack_from("<2I2Q", request)
        if opcode == READ:
            print("read", flush=True)
        if opcode in (READ, FORGET, INTERRUPT, BATCH_FORGET):
            continue
        body = answer(opcode, node, request[40:])
        error, data = (-body, b"") if isinstance(body, int) else (0, body)
        os.write(fuse, struct.pack("<IiQ", 16 + len(data), error, unique) + data)
finally:
    libc.umount2(directory.encode(), 2)  # MNT_DETACH
