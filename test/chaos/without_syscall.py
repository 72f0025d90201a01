"""Runs a program on a kernel that lacks a system call, as far as the program can tell.

usage: without_syscall.py NUMBER PROGRAM ARGUMENT...

A seccomp filter answers the call with ENOSYS, as a kernel that is older than the call does. What the program starts
lacks it, too. See seccomp(2) and linux/filter.h, from which the numbers below are.
"""

import ctypes
import errno
import os
import struct
import sys

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2
_LOAD_WORD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _FAIL_WITH = 0x7FFF0000, 0x00050000


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


def _instruction(code: int, operand: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, operand)


def _prctl(*arguments: object) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(*arguments) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def forget(number: int) -> None:
    """From now on the call with this number is not there."""
    program = b"".join([
        _instruction(_LOAD_WORD, 0),  # seccomp_data.nr
        _instruction(_JUMP_IF_EQUAL, number, if_false=1),
        _instruction(_RETURN, _FAIL_WITH | errno.ENOSYS),
        _instruction(_RETURN, _ALLOW),
    ])
    _prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(_Program(len(program) // 8, program)), 0, 0)


if __name__ == "__main__":
    forget(int(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])
