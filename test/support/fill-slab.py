"""Fills unreclaimable slab with argv[1] bytes of datagrams that nobody reads; ends with its stdin."""
import socket
import sys

wanted, sent, held = int(sys.argv[1]), 0, []
while sent < wanted:
    sender, receiver = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    held += [sender, receiver]
    sender.setblocking(False)
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    try:
        while True:
            sent += sender.send(b"x" * 3000)
    except BlockingIOError:
        pass
print("filled", flush=True)
sys.stdin.read()
