import ctypes
import enum
import errno
import os

_SYS_OPENAT2 = 437  # on every architecture since it came with Linux 5.6
_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH, _IN_ROOT = 0x02, 0x04, 0x08, 0x10
_TRIES = 128
"""Of a walk over ``..`` that a rename beside it has made unsure (EAGAIN)."""

_libc = ctypes.CDLL(None, use_errno=True)


class Links(enum.Enum):
    REFUSED = _BENEATH | _NO_SYMLINKS | _NO_MAGICLINKS
    """Any in the path is an error (ELOOP), and so is ``..`` that leads out (EXDEV)."""
    AS_INSIDE = _IN_ROOT | _NO_MAGICLINKS
    """Followed as if the directory were the root: ``/etc`` and ``..`` stay in it."""


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def openat2(root: int, path: str, *, flags: int, links: Links, mode: int = 0) -> int:
    """Open ``path`` in the directory ``root``; the descriptor is closed on exec."""
    how = _How(flags=flags | os.O_CLOEXEC, mode=mode, resolve=links.value)
    encoded = os.fsencode(path) or b"."
    for _ in range(_TRIES):
        descriptor: int = _libc.syscall(
            ctypes.c_long(_SYS_OPENAT2), ctypes.c_int(root), encoded, ctypes.byref(how), ctypes.c_size_t(24)
        )
        number = ctypes.get_errno()
        if descriptor >= 0:
            return descriptor
        if number not in (errno.EAGAIN, errno.EINTR):
            break
    raise OSError(number, os.strerror(number), path)
