"""Makes this process write as on a file system without `O_TMPFILE`, where partial files have names.

A seccomp filter refuses to open unnamed files, irrevocably, so only children call it. It has no
effect on systems without seccomp.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

#: By machine, the numbers of the system calls that open files, and the offsets of their flags.
OPEN = {"x86_64": [(257, 32), (2, 24)], "aarch64": [(56, 32)]}
LOAD, IS_EQUAL, HAS_BITS, RETURN = 0x20, 0x15, 0x45, 0x06
#: The offset of the number of the system call.
NUMBER = 0
REFUSE, ALLOW = 0x00050000, 0x7FFF0000
NO_NEW_PRIVILEGES, SET_FILTER, BY_PROGRAM = 38, 22, 2


class Program(ctypes.Structure):
    """The kernel's `sock_fprog`: a filter program and its length."""

    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def use_named_parts() -> None:
    """Makes every later attempt of this process to open an unnamed file fail."""
    calls = OPEN.get(platform.machine())
    if calls is None or not hasattr(os, "O_TMPFILE"):
        return
    nameless = os.O_TMPFILE & ~os.O_DIRECTORY
    steps = []
    for call, flags in calls:
        steps += [
            (LOAD, 0, 0, NUMBER),
            (IS_EQUAL, 0, 3, call),
            (LOAD, 0, 0, flags),
            (HAS_BITS, 0, 1, nameless),
            (RETURN, 0, 0, REFUSE | errno.EOPNOTSUPP),
        ]
    steps.append((RETURN, 0, 0, ALLOW))
    code = b"".join(struct.pack("HBBI", *step) for step in steps)
    control = ctypes.CDLL(None).prctl
    control(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    control(SET_FILTER, BY_PROGRAM, ctypes.byref(Program(len(steps), code)))
