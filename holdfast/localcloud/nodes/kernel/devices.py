"""
Device rules of a cgroup of version 2, as an eBPF program.

Rules are those of a devices cgroup of version 1: ``b *:* rw``, ``c 1:11 rw``. All programs of nested cgroups must allow
an access (linux/bpf.h: BPF_PROG_TYPE_CGROUP_DEVICE, BPF_F_ALLOW_MULTI).
"""

import ctypes
import os
import platform
import struct
from collections.abc import Iterable
from pathlib import Path

_SYS_BPF = {"x86_64": 321, "aarch64": 280}
_LOAD, _ATTACH = 5, 8
_CGROUP_DEVICE_PROGRAM, _CGROUP_DEVICE, _ALLOW_MULTI = 15, 6, 2
_TYPES = {"b": 1, "c": 2}
_ACCESSES = {"m": 1, "r": 2, "w": 4}
_LOAD_WORD, _MOVE, _SET, _AND, _RIGHT, _IF_EQUAL, _IF_OTHER, _EXIT = 0x61, 0xBF, 0xB7, 0x57, 0x77, 0x15, 0x55, 0x95
_RESULT, _CONTEXT, _ACCESS, _TYPE, _MAJOR, _MINOR, _SCRATCH = range(7)


def deny(cgroup: Path, rules: Iterable[str]) -> None:
    folder = os.open(cgroup, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        program = _load(program_of(rules))
        try:
            _bpf(_ATTACH, struct.pack("=4I", folder, program, _CGROUP_DEVICE, _ALLOW_MULTI))
        finally:
            os.close(program)
    finally:
        os.close(folder)


def program_of(rules: Iterable[str]) -> bytes:
    """Return instructions that return 0 for an access that a rule names, else 1."""
    code = [
        _instruction(_LOAD_WORD, _ACCESS, source=_CONTEXT),
        _instruction(_MOVE, _TYPE, source=_ACCESS),
        _instruction(_AND, _TYPE, value=0xFFFF),
        _instruction(_RIGHT, _ACCESS, value=16),
        _instruction(_LOAD_WORD, _MAJOR, source=_CONTEXT, offset=4),
        _instruction(_LOAD_WORD, _MINOR, source=_CONTEXT, offset=8),
    ]
    for rule in rules:
        kind, numbers, accesses = rule.split()
        major, _, minor = numbers.partition(":")
        desired = [(_TYPE, _TYPES[kind])]
        desired += [(register, int(n)) for register, n in ((_MAJOR, major), (_MINOR, minor)) if n != "*"]
        rest = [
            _instruction(_MOVE, _SCRATCH, source=_ACCESS),
            _instruction(_AND, _SCRATCH, value=sum(_ACCESSES[name] for name in accesses)),
            _instruction(_IF_EQUAL, _SCRATCH, offset=2),
            _instruction(_SET, _RESULT),
            _instruction(_EXIT),
        ]
        for number, (register, value) in enumerate(desired):
            left = len(desired) - number - 1 + len(rest)
            code.append(_instruction(_IF_OTHER, register, offset=left, value=value))
        code += rest
    return b"".join([*code, _instruction(_SET, _RESULT, value=1), _instruction(_EXIT)])


def _instruction(code: int, target: int = 0, *, source: int = 0, offset: int = 0, value: int = 0) -> bytes:
    return struct.pack("=BBhi", code, source << 4 | target, offset, value)


def _load(program: bytes) -> int:
    code, license_ = ctypes.create_string_buffer(program), ctypes.create_string_buffer(b"GPL")
    places = ctypes.addressof(code), ctypes.addressof(license_)
    return _bpf(_LOAD, struct.pack("=2I2Q2IQ2I", _CGROUP_DEVICE_PROGRAM, len(program) // 8, *places, 0, 0, 0, 0, 0))


def _bpf(command: int, attributes: bytes) -> int:
    number = _SYS_BPF.get(platform.machine())
    if number is None:
        raise OSError(f"bpf is not known for machine type {platform.machine()!r}; use x86_64 or aarch64")
    data = ctypes.create_string_buffer(attributes, len(attributes))
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.syscall(ctypes.c_long(number), ctypes.c_int(command), data, ctypes.c_uint(len(attributes)))
    if result < 0:
        raise OSError(ctypes.get_errno(), f"bpf: {os.strerror(ctypes.get_errno())}")
    return int(result)
