import hashlib
import time
from pathlib import Path

from holdfast_agent.burn_in.trial import Trial

CHUNK = 8 << 20
MOST_SHARE = 0.05
"""Share of the available memory: the node may have work by now."""
MOST_BYTES_PER_S = 64 << 20
_PATTERNS = (b"\x00", b"\xff", b"\x55", b"\xaa")


def memory(*, seconds: float) -> Trial:
    """Fill as much memory as the time allows with patterns, then compare."""
    room = int(available_bytes() * MOST_SHARE)
    size = max(min(room, int(seconds * MOST_BYTES_PER_S)) // CHUNK, 1) * CHUNK
    problems: list[str] = []
    moved, rounds = 0, 0
    until_s = time.monotonic() + seconds
    began_s = time.process_time()
    while rounds == 0 or (time.monotonic() < until_s and not problems):
        patterns = [_pattern(rounds, number) for number in range(size // CHUNK)]
        kept = [bytearray(pattern) for pattern in patterns]
        wrong = [number for number, pattern in enumerate(patterns) if kept[number] != pattern]
        if wrong:
            problems.append(f"{len(wrong)} of {len(kept)} memory blocks differ from what was written")
        moved += 2 * size
        rounds += 1
    rate = moved / max(time.process_time() - began_s, 1e-6) / (1 << 30)
    return Trial("memory", tuple(problems), {"memory_gib_per_cpu_s": round(rate, 3)})


def _pattern(rounds: int, number: int) -> bytes:
    """A constant byte, or one that depends on the position, to find address faults."""
    kind = (rounds + number) % (len(_PATTERNS) + 1)
    if kind < len(_PATTERNS):
        return _PATTERNS[kind] * CHUNK
    return hashlib.sha256(f"{rounds} {number}".encode()).digest() * (CHUNK // 32)


def available_bytes() -> int:
    """MemAvailable; 1 GiB where the kernel does not report it."""
    try:
        for line in Path("/proc/meminfo").read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    except (OSError, ValueError, IndexError):
        pass
    return 1 << 30
