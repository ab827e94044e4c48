"""Has this process write as on a file system without nameless files: parts have names there.

A filter of system calls refuses to open a file without a name, for this process and for good: only
a child that is killed anyway calls it. Where there is no such filter, nothing changes.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

#: The numbers of the calls that open files, and where the filter finds their flags, by machine.
OPEN = {"x86_64": [(257, 32), (2, 24)], "aarch64": [(56, 32)]}
LOAD, IS_EQUAL, HAS_BITS, RETURN = 0x20, 0x15, 0x45, 0x06
#: Where the filter finds the number of the call.
NUMBER = 0
REFUSE, ALLOW = 0x00050000, 0x7FFF0000
NO_NEW_PRIVILEGES, SET_FILTER, BY_PROGRAM = 38, 22, 2


class Program(ctypes.Structure):
    """A filter, as the system takes it."""

    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def use_named_parts() -> None:
    """Lets this process have no nameless files from now on."""
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
