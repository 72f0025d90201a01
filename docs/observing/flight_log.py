# A flight log in Python: docs/observing.md#flight-logs says what it is for.
#
#   flights = Flights()
#   at = flights.enter("all-reduce", "fc7.weight", 4096, number)   # number: from 1, the same on all ranks
#   ...                                                            # the operation itself
#   flights.leave(at)                                              # not when it has failed
#
# The layout, version 1. MUSTER_FLIGHT_LOG names a file and MUSTER_FLIGHT_OFFSET a place in it, where this worker's log
# of 16,384 bytes begins; map it there. Numbers have the machine's own byte order. What is not listed is zero.
#
#   at  bytes  header
#   0   8      MUSTERFL; write nothing if it is missing
#   8   4      the version, 1; write nothing if it is another
#   12  4      the number of records, 63
#   16  4      the length of a record and of this header, 256
#   20  4      1 as soon as the log is kept; a rank that leaves 0 here and begins nothing "keeps no log"
#   64  8      the ticket of the operation that was begun last; 0: none yet
#
# The operation with ticket n, counted from 1, has the record at 256 + 256 (n mod 63):
#
#   at  bytes  record
#   0   8      the ticket; 0 while the record is written
#   8   8      when the operation was entered, in nanoseconds of CLOCK_MONOTONIC
#   16  8      when it was left; 0: it is not finished
#   24  8      the tensor's bytes
#   32  4      the number of the operation, from 1, the same on all ranks that take part
#   36  1      who takes part: 0 two ranks, 1 all of the group, 2 its ranks of a host, 3 the leaders of its hosts
#   40  24     what it is: all-reduce
#   64  32     the group's name; empty for the group of all ranks
#   96  96     the tensor's name; where two ranks take part, the other one: from rank 1
#
# Texts end at their first zero byte or where their field ends; unprintable bytes are shown as ?. When you open a log,
# zero all but its first 64 bytes: a wrapper may have started the program again. To begin an operation, count the last
# ticket up, set the record's ticket to 0, write the rest, and the ticket last. At its end write when it was left, but
# not when it has failed. An operation that has failed and was caught counts as over when a later one of the same group
# and part is finished.
import mmap, os, struct, time

class Flights:
    def __init__(self):
        self.log, self.ticket = None, 0
        try:
            with open(os.environ["MUSTER_FLIGHT_LOG"], "r+b") as file:
                log = mmap.mmap(file.fileno(), 16384, offset=int(os.environ["MUSTER_FLIGHT_OFFSET"]))
            if log[:8] == b"MUSTERFL" and struct.unpack_from("=I", log, 8)[0] == 1:
                self.log = log
                log[64:] = bytes(len(log) - 64)  # of a program that was here before
                struct.pack_into("=I", log, 20, 1)
        except (KeyError, OSError, ValueError):
            pass  # no launcher that reads it

    def enter(self, operation, tensor, size, number):
        self.ticket += 1
        at = 256 + 256 * (self.ticket % 63)
        if self.log:
            struct.pack_into("=Q", self.log, 64, self.ticket)
            struct.pack_into("=Q", self.log, at, 0)
            struct.pack_into("=qqQIB3x24s32s96s", self.log, at + 8, time.monotonic_ns(), 0, size, number, 1,
                             operation.encode(), b"", tensor.encode())
            struct.pack_into("=Q", self.log, at, self.ticket)
        return at

    def leave(self, at):
        if self.log:
            struct.pack_into("=q", self.log, at + 16, time.monotonic_ns())
