# A worker that reports its steps (docs/observing.md). Its ranks meet in a directory, the argument,
# in each step; rank 2 takes longer to read its data while a file "slow" exists there. All exit once
# there is a file "end".
import os
import socket
import sys
import time

place = sys.argv[1]
rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
beats = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)


def meet(name):
    open(f"{place}/{name}.{rank}", "w").close()
    while not all(os.path.exists(f"{place}/{name}.{other}") for other in range(world_size)):
        time.sleep(0.001)


step = 0
while True:
    step += 1
    began = time.monotonic()
    time.sleep(0.06 if rank == 2 and os.path.exists(f"{place}/slow") else 0.01)
    read = time.monotonic()
    time.sleep(0.02)
    computed = time.monotonic()
    meet(f"met.{step}")
    met = time.monotonic()
    beats.sendto(f"beat {rank} {step} loss={2 / step} samples_per_second=64 data={read - began:.4f} "
                 f"forward={computed - read:.4f} wait={met - computed:.4f}".encode(), os.environ["MUSTER_BEAT_SOCKET"])
    # All see the same, as the file is not created between a step's two meetings.
    ends = os.path.exists(f"{place}/end") if rank == 0 else None
    if ends:
        open(f"{place}/last.{step}", "w").close()
    meet(f"looked.{step}")
    if os.path.exists(f"{place}/last.{step}"):
        break
