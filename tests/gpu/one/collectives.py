"""T3, T4, T2, T5, T1, T0: leaving NCCL's collectives. One GPU, at most four minutes."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import suite
from suite import Check, Figures

import torch  # isort: skip  # the paths of this repository are in suite
import torch.distributed as dist
from ranks import Place, Rank, ranks, timed

from holdfast_runtime.groups import nccl, private

MIB = 1 << 20
LEAVE_S = 1.0
TRIES = 50


def killed(device: str) -> Figures:
    """T3. SIGKILL of one of three in a collective: who ends, by what, and when."""
    found: dict[str, Any] = {}
    for name, settings in (("torch's defaults", None), ("ours", nccl.WATCHDOG)):
        with ranks(_reduce_for_ever if settings is None else _reduce_with_ours, 3, device) as started:
            _all_answer(started)
            began = time.monotonic()
            started[1].signal(signal.SIGKILL)
            codes = [
                each.ended(within_s=8.0 if number == 0 else 0.5) for number, each in enumerate(started) if number != 1
            ]
            found[name] = {"exit codes": codes, "seconds": round(time.monotonic() - began, 2)}
    assert found["ours"]["exit codes"] == [None, None] or device == "cpu", f"a survivor ended: {found}"
    return found


def _reduce_for_ever(place: Place) -> None:
    for name in nccl.WATCHDOG:
        os.environ.pop(name, None)
    _reduce(place)


def _reduce_with_ours(place: Place) -> None:
    nccl.set_environment()
    _reduce(place)


def _reduce(place: Place) -> None:
    place.group()
    data = place.ones(MIB)
    dist.all_reduce(data)
    place.settle()
    place.send()
    while True:
        data.fill_(1.0)
        dist.all_reduce(data)
        place.settle()


def cut(device: str) -> Figures:
    """T4. After an abort: a tail that is whole beside a head that is not, and the flag to leave."""
    wrong = unseen = done = 0
    end = time.monotonic() + 35.0
    while done < TRIES and time.monotonic() < end:
        with ranks(_reduce_once, 2, device) as started:
            _all_answer(started)
            for each in started:
                each.send()
            time.sleep(0.002 + 0.001 * (done * 7 % 40))
            started[1].signal(signal.SIGKILL)
            head, tail, flag = started[0].answer(within_s=20.0)
            done += 1
            wrong += tail and not head
            unseen += tail and not head and not flag
    assert done, "no try ended"
    assert unseen == 0, f"{unseen} of {done} tries would count a vote with wrong data"
    return {"tries": done, "tail whole, head not": wrong, "of these without the flag": unseen}


def _reduce_once(place: Place) -> None:
    nccl.set_environment()
    group = place.group()
    data = place.ones(16 * MIB)
    dist.all_reduce(place.ones(1))
    place.settle()
    flag = threading.Event()

    def leave() -> None:
        flag.set()
        group.release()

    place.send()
    place.receive()
    threading.Timer(LEAVE_S, leave).start()
    try:
        dist.all_reduce(data)
        head, tail = bool((data[:-1] == place.size).all()), bool(data[-1] == place.size)
    except RuntimeError:
        head = tail = False
    place.send((head, tail, flag.is_set()))
    place.receive()


def aborted(device: str) -> Figures:
    """T2. Two groups, the second waits for the first on the GPU, a peer stops: sequential and parallel aborts."""
    found: dict[str, Any] = {}
    for name, act in (("one after the other", _leave_in_turn), ("a thread each", _leave_at_once)):
        with ranks(act, 2, device) as started:
            _all_answer(started)
            started[1].signal(signal.SIGSTOP)
            started[0].send()
            try:
                found[name] = started[0].answer(within_s=15.0)
            except AssertionError as error:
                found[name] = str(error).splitlines()[-1]
            started[1].signal(signal.SIGCONT)
    assert isinstance(found["a thread each"], dict), f"not free: {found}"
    return found


def _leave_in_turn(place: Place) -> None:
    _leave(place, at_once=False)


def _leave_at_once(place: Place) -> None:
    _leave(place, at_once=True)


def _leave(place: Place, *, at_once: bool) -> None:
    nccl.set_environment()
    group = place.group()
    first, second = dist.new_group(), dist.new_group()
    data = place.ones(MIB)
    for each in (first, second):
        dist.all_reduce(data, group=each)
    place.settle()
    place.send()
    place.receive()

    def release() -> None:
        if at_once:
            group.release()
        else:
            for backend in nccl.backends(private.groups()):
                backend.abort()

    threading.Timer(LEAVE_S, release).start()

    def wait() -> None:
        try:
            dist.all_reduce(data, group=first)
            dist.all_reduce(data, group=second)
            place.settle()
        except RuntimeError:
            return

    freed = timed(wait) - LEAVE_S
    place.send({"free after": round(freed, 3), "closed after": round(timed(group.close), 3)})


def unmet(device: str) -> Figures:
    """T5. A peer that never makes its communicator."""
    found: dict[str, Any] = {}
    for name, settings in (("blocking", "0"), ("non-blocking", "1")):
        with ranks(_open_alone, 2, device, environment={"TORCH_NCCL_USE_COMM_NONBLOCKING": settings}) as started:
            found[name] = {
                "free after": started[0].answer(within_s=18.0),
                "sums again": started[0].answer(within_s=18.0),
            }
    return found


def _open_alone(place: Place) -> None:
    nccl.set_environment()
    if place.rank == 1:
        place.receive()
    over = threading.Event()
    threading.Timer(LEAVE_S, over.set).start()
    began = time.perf_counter()
    try:
        place.group(leaving=over.is_set)
    except (ConnectionError, RuntimeError):
        place.send(round(time.perf_counter() - began - LEAVE_S, 3))
    data = place.ones(MIB) + place.ones(MIB)
    place.send(float(data.sum()) == 2.0 * MIB)


def leaked(device: str) -> Figures:
    """T1. Groups opened, released from a thread and closed again and again: what grows."""
    with ranks(_regroup, 1, device) as started:
        before, after, seconds = started[0].answer(within_s=40.0)
    grown = {name: after[name] - before[name] for name in before}
    assert grown["files"] <= 4, f"files leak: {grown}"
    return {"grown": grown, "seconds each": round(seconds, 4)}


def _regroup(place: Place) -> None:
    nccl.set_environment()
    counts = iter(_counts(place))
    rounds = 100 if place.device.type == "cuda" else 10

    def once() -> None:
        group = place.group()
        dist.all_reduce(place.ones(MIB))
        place.settle()
        thread = threading.Thread(target=group.release)
        thread.start()
        thread.join()
        group.close()

    for _ in range(5):
        once()
    before = next(counts)
    seconds = timed(lambda: [once() for _ in range(rounds)]) / rounds
    place.send((before, next(counts), seconds))


def _counts(place: Place) -> Iterator[dict[str, int]]:
    while True:
        free = torch.cuda.mem_get_info()[0] if place.device.type == "cuda" else 0
        with open("/proc/self/statm") as file:  # noqa: PTH123
            pages = int(file.read().split()[1])
        yield {
            "files": len(os.listdir("/proc/self/fd")),  # noqa: PTH208
            "threads": len(os.listdir("/proc/self/task")),  # noqa: PTH208
            "memory": pages * os.sysconf("SC_PAGE_SIZE"),
            "GPU memory": -free,
        }


def facts(device: str) -> Figures:
    """T0. CUDA in a child that was forked after torch was imported, and what a context takes."""
    import torch._dynamo  # as the launcher's zygote preloads it

    assert not torch.cuda.is_initialized(), "the preload uses CUDA"
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        seconds = timed(lambda: torch.ones(1, device=device).sum().item())
        os.write(writing, f"{seconds:.3f}".encode())
        os._exit(0)
    os.close(writing)
    text = os.read(reading, 64).decode()
    os.waitpid(child, 0)
    assert text, "a forked child cannot use the device"
    used = 0
    if device == "cuda":
        free, _ = torch.cuda.mem_get_info()
        torch.ones(1, device=device)
        used = free - torch.cuda.mem_get_info()[0]
    return {"first use in a forked child, s": float(text), "memory of a context, bytes": used}


def _all_answer(started: list[Rank]) -> None:
    for each in started:
        each.answer()


CHECKS = (
    Check("T3", "a killed peer", "with torch's defaults survivors die by SIGABRT; with ours none does", 40, killed),
    Check("T4", "partial data after an abort", "a whole tail beside a wrong head, always with the flag", 50, cut),
    Check("T2", "aborts in turn and at once", "in turn they may wait for each other", 45, aborted),
    Check("T5", "a communicator without its peer", "free at once; the left thread does no harm", 45, unmet),
    Check("T1", "100 generations", "files, threads and GPU memory do not grow", 45, leaked),
    Check("T0", "facts", "CUDA works in a forked child; a context takes about 500 MB", 15, facts),
)

if __name__ == "__main__":
    raise SystemExit(suite.main(CHECKS))
