"""Runs a program for which a system call does not exist: without_call.py NUMBER PROGRAM [ARGUMENTS].

As on a kernel before the call, or behind a container's filter, it fails with ENOSYS: for the program and its children.
"""

import ctypes
import errno
import os
import struct
import sys

PR_SET_SECCOMP, SECCOMP_MODE_FILTER, PR_SET_NO_NEW_PRIVS = 22, 2, 38
RET_ERRNO, RET_ALLOW = 0x00050000, 0x7FFF0000
# BPF: load the call's number; if it matches, fail; else continue.
program = b"".join(
    struct.pack("HBBI", *line)
    for line in ((0x20, 0, 0, 0), (0x15, 0, 1, int(sys.argv[1])), (0x06, 0, 0, RET_ERRNO | errno.ENOSYS),
                 (0x06, 0, 0, RET_ALLOW))
)


class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("program", ctypes.c_char_p)]


libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
    sys.exit("prctl(PR_SET_NO_NEW_PRIVS): " + os.strerror(ctypes.get_errno()))
if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(Filter(4, program))) != 0:
    sys.exit("prctl(PR_SET_SECCOMP): " + os.strerror(ctypes.get_errno()))
os.execv(sys.argv[2], sys.argv[2:])
