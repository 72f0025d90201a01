"""Rank 0 listens at MASTER_ADDR:MASTER_PORT, as the workers' store would; the others connect."""
import os
import socket
import time

address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
rank = int(os.environ["RANK"])
if rank == 0:
    server = socket.create_server(address)
    peer, _ = server.accept()
    greeting = peer.recv(100).decode()
else:
    deadline = time.monotonic() + 30
    while True:
        try:
            peer = socket.create_connection(address, timeout=5)
            break
        except ConnectionRefusedError:  # rank 0 does not listen yet
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
    greeting = "hello from rank %d" % rank
    peer.sendall(greeting.encode())
print("rank %d of %s, group rank %s, master %s: %s" % (
    rank, os.environ["WORLD_SIZE"], os.environ["GROUP_RANK"], address[0], greeting))
