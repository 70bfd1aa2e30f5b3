"""The program by which a cgroup of version 2 denies devices, run here as the kernel runs it."""

import struct

import pytest

from holdfast.localcloud.nodes.kernel.devices import program_of
from holdfast.localcloud.nodes.kernel.limits import DENIED_DEVICES

BLOCK, CHARACTER = 1, 2
MAKE, READ, WRITE = 1, 2, 4


def allows(program: bytes, *, kind: int, access: int, major: int, minor: int) -> bool:
    """Interpret the instructions that the program uses, as linux/bpf.h has them."""
    context, registers, at = {0: access << 16 | kind, 4: major, 8: minor}, [0] * 11, 0
    while True:
        code, places, offset, value = struct.unpack_from("=BBhi", program, 8 * at)
        target, source = places & 0xF, places >> 4
        at += 1
        if code == 0x95:
            return bool(registers[0])
        if code in (0x15, 0x55):
            at += offset if (registers[target] == value) == (code == 0x15) else 0
            continue
        if code == 0x61:
            registers[target] = context[offset]
        elif code == 0x77:
            registers[target] >>= value
        elif code == 0x57:
            registers[target] &= value
        else:
            registers[target] = {0xBF: registers[source], 0xB7: value}[code]


@pytest.mark.parametrize(
    ("kind", "access", "major", "minor", "allowed"),
    [
        (BLOCK, READ, 8, 0, False),
        (BLOCK, WRITE, 259, 1, False),
        (BLOCK, MAKE, 8, 0, True),
        (CHARACTER, READ, 1, 1, False),
        (CHARACTER, READ | WRITE, 1, 4, False),
        (CHARACTER, WRITE, 1, 11, False),
        (CHARACTER, READ | WRITE, 1, 3, True),
        (CHARACTER, READ, 195, 1, True),
        (CHARACTER, MAKE, 1, 1, True),
    ],
)
def test_disks_memory_ports_and_the_kernel_log_are_denied_and_nothing_else(
    kind: int, access: int, major: int, minor: int, allowed: bool
) -> None:
    program = program_of(DENIED_DEVICES)

    assert allows(program, kind=kind, access=access, major=major, minor=minor) is allowed
