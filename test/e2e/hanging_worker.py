# A worker that sends beats and keeps a flight log (docs/observing.md). Its ranks meet in a
# directory, the argument, in each step, until rank 1 is stuck elsewhere and the others wait for it
# in all-reduce 6.
import mmap
import os
import socket
import struct
import sys
import time

rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
beats = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
with open(os.environ["MUSTER_FLIGHT_LOG"], "r+b") as file:
    log = mmap.mmap(file.fileno(), 16384, offset=int(os.environ["MUSTER_FLIGHT_OFFSET"]))
log[64:] = bytes(len(log) - 64)
struct.pack_into("=I", log, 20, 1)

for step in range(1, 1000):
    if rank == 1 and step == 6:
        time.sleep(10000)
    at = 256 + 256 * (step % 63)
    struct.pack_into("=Q", log, 64, step)
    struct.pack_into("=QqqQIB3x24s32s96s", log, at, step, time.monotonic_ns(), 0, 4, step, 1, b"all-reduce", b"", b"grad")
    open(f"{sys.argv[1]}/met.{step}.{rank}", "w").close()
    while not all(os.path.exists(f"{sys.argv[1]}/met.{step}.{other}") for other in range(world_size)):
        time.sleep(0.001)
    struct.pack_into("=q", log, at + 16, time.monotonic_ns())
    beats.sendto(f"beat {rank} {step}".encode(), os.environ["MUSTER_BEAT_SOCKET"])
