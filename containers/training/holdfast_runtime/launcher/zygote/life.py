"""
A lock that a process holds for as long as it lives, so that its death is known before its memory is given back.

The kernel first gives back what a killed thread holds of robust locks, then the memory of the process, which takes up
to 0.1 s for 1 GB, then its connections; only then it is a dead process for whoever waits for it (``do_exit`` in Linux'
``kernel/exit.c``; set_robust_list(2)). That hundreds of GB, pinned for a GPU, take seconds is assumed.
"""

import ctypes
import errno
import mmap
import os

_PROCESS_SHARED = 1
_ROBUST = 1
_ATTRIBUTE_BYTES = 64
"""More than a pthread_mutexattr_t has on any Linux."""


class Life:
    """
    Shared by the process and by who waits for its death.

    Args:
        descriptor: Of the memory that the lock is in. Default: new memory, with a lock that nobody holds.
    """

    def __init__(self, descriptor: int | None = None) -> None:
        self._libc = ctypes.CDLL(None)
        self.descriptor = os.memfd_create("life", os.MFD_CLOEXEC) if descriptor is None else descriptor
        if descriptor is None:
            os.ftruncate(self.descriptor, mmap.PAGESIZE)
        self._memory = mmap.mmap(self.descriptor, mmap.PAGESIZE)
        self._lock = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(self._memory)))
        if descriptor is None:
            attribute = ctypes.create_string_buffer(_ATTRIBUTE_BYTES)
            self._libc.pthread_mutexattr_init(attribute)
            self._libc.pthread_mutexattr_setpshared(attribute, _PROCESS_SHARED)
            self._libc.pthread_mutexattr_setrobust(attribute, _ROBUST)
            self._libc.pthread_mutex_init(self._lock, attribute)

    def close(self) -> None:
        """The descriptor is needed no more; the lock stays."""
        os.close(self.descriptor)

    def hold(self) -> None:
        """By the main thread of the process, until it ends."""
        self._libc.pthread_mutex_lock(self._lock)

    def wait(self) -> bool | None:
        """Until nobody holds it: whether who held it is dead now; None where it is no lock any more."""
        code = self._libc.pthread_mutex_lock(self._lock)
        if code not in (0, errno.EOWNERDEAD):
            return None
        if code:
            self._libc.pthread_mutex_consistent(self._lock)
        self._libc.pthread_mutex_unlock(self._lock)
        return bool(code)
