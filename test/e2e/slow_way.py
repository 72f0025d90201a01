"""A cable that is slow for some: what goes between two network devices, delayed where it is from or to an address.

usage: slow_way.py DEVICE DEVICE ADDRESS SECONDS
Frames go from each device to the other. Those of IPv4 with that address wait, all others do not. Says "ready" when it
has begun, and needs root. A kernel with netem would do without it.
"""

import heapq
import itertools
import select
import socket
import sys
import time

SOL_PACKET, PACKET_IGNORE_OUTGOING, PACKET_VNET_HDR = 263, 23, 15
ALL = 3  # ETH_P_ALL
HEADER = 10  # with it frames keep checksums and sizes that the kernel has still to make


def open_device(name):
    device = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL))
    device.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    device.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    device.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
    device.bind((name, 0))
    return device


def main():
    one, other = open_device(sys.argv[1]), open_device(sys.argv[2])
    peer = {one: other, other: one}
    address, delay = socket.inet_aton(sys.argv[3]), float(sys.argv[4])
    waiting, order = [], itertools.count()
    print("ready", flush=True)
    while True:
        left = max(0, waiting[0][0] - time.monotonic()) if waiting else None
        for device in select.select([one, other], [], [], left)[0]:
            try:
                frame = device.recv(1 << 17)
            except OSError:
                return  # The device is gone.
            ethernet = frame[HEADER:]
            is_slow = ethernet[12:14] == b"\x08\x00" and address in (ethernet[26:30], ethernet[30:34])
            heapq.heappush(waiting, (time.monotonic() + (delay if is_slow else 0), next(order), peer[device], frame))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, device, frame = heapq.heappop(waiting)
            try:
                device.send(frame)
            except OSError:
                pass  # As a cable that loses a frame.


main()
