"""Arithmetic with a known result, on all cores at once."""

import hashlib
import json
import os
import time

from holdfast_agent.burn_in.trial import Trial

_MODULUS = (1 << 521) - 1
_ROUNDS = 40
EXPECTED = (
    "45a35807c2c5e887bb9a1e55c59b604e09c6905294170aa8a520d4612e99cdd8"
    "b4be4ca25398a728736e2647e727d0e539874a356e855b9c9ed3dc2453c96858"
)
"""Digest of one block."""


def block() -> str:
    """Integers, rotations and memory moves with the same result on all machines."""
    number, digest = 3, hashlib.sha512()
    data = bytes(range(256)) * 64
    for step in range(_ROUNDS):
        number = pow(number, 65537, _MODULUS) * (step + 1) % _MODULUS
        digest.update(number.to_bytes(66, "big"))
        digest.update(data[step:])
    return digest.hexdigest()


def compute(*, seconds: float) -> Trial:
    """Compute blocks until the time is over, one process per core that this process may use."""
    workers = []
    for _ in os.sched_getaffinity(0):
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            _work(writing, seconds)
        os.close(writing)
        workers.append((pid, reading))
    rates: list[float] = []
    problems: list[str] = []
    for number, (pid, reading) in enumerate(workers):
        with os.fdopen(reading, "rb") as file:
            text = file.read()
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        try:
            rate, wrong = json.loads(text)
        except ValueError:
            problems.append(f"the computation of core {number} exited with {code} without a result")
            continue
        rates.append(rate)
        if wrong:
            problems.append(f"core {number} computed {wrong} blocks incorrectly")
    figures = {"compute_blocks_per_cpu_s": round(min(rates), 1)} if rates else {}
    return Trial("compute", tuple(problems), figures)


def _work(writing: int, seconds: float) -> None:
    done = wrong = 0
    until_s = time.monotonic() + seconds
    began_s = time.process_time()
    try:
        while time.monotonic() < until_s or not done:
            wrong += block() != EXPECTED
            done += 1
        rate = done / max(time.process_time() - began_s, 1e-6)
        os.write(writing, json.dumps([rate, wrong]).encode())
    finally:
        os._exit(0)
