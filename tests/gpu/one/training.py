"""T10, T11, T6, T9, T7, T8: training on one GPU. At most four minutes."""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import suite
from suite import PATIENCE, Check, Figures

import torch  # isort: skip  # the paths of this repository are in suite
import torch.distributed as dist
from ranks import Place, ranks, timed
from torch import nn

import holdfast_runtime as holdfast
from holdfast_runtime.control import Deadlines
from holdfast_runtime.groups import check_version, nccl, private
from holdfast_runtime.inprocess import Standing, chosen_backend, digest_of, probe, weighted_sum
from holdfast_runtime.inprocess.member import Peers

GB = 10**9
STEPS = 12
DEADLINES = (
    "beat=0.2,heartbeat=3,leave=12,ready=13,minority=20,view=40,connect=45,transfer=50,progress=15,start=60,stop=5,"
    "frozen=2"
)
FAULTS = {
    "SIGKILL": {"kind": "SIGKILL", "phase": "bucket:1", "rank": 1, "step": 4},
    "exception": {"kind": "exception", "phase": "forward", "rank": 0, "step": 4},
    "SIGSTOP": {"kind": "SIGSTOP", "phase": "bucket:1", "rank": 2, "step": 4},
}


def broken(device: str) -> Figures:
    """T10. A device-side assert: which error, does the process go on, does another thread live."""
    with ranks(_assert_on_device, 1, device) as started:
        found = started[0].answer(within_s=20.0)
        found["exit code"] = started[0].ended(within_s=5.0)
    assert found["beats after it"] > 0, f"no other thread runs: {found}"
    assert device == "cpu" or found["probe after it"], "the probe does not see a broken context"
    return dict(found)


def _assert_on_device(place: Place) -> None:
    beats: list[float] = []

    def beat() -> None:
        while True:
            beats.append(time.monotonic())
            time.sleep(0.02)

    threading.Thread(target=beat, daemon=True).start()
    error: Exception | None = None
    try:
        torch.arange(4, device=place.device)[torch.tensor([99], device=place.device)].sum().item()
    except Exception as caught:  # noqa: BLE001 - which one is the question
        error = caught
    at = time.monotonic()
    time.sleep(0.2)
    text = probe(lambda: place.ones(4).sum().item(), limit_s=5.0)
    place.send(
        {
            "error": f"{type(error).__name__}: {str(error).splitlines()[0]}",
            "probe after it": text,
            "beats after it": sum(each > at for each in beats),
        }
    )


def begun(device: str) -> Figures:
    """T11. What ended a start or hung before: a group of checkpoints, "nccl", a mean on the GPU, a captured graph."""
    with ranks(_start, 2, device) as started:
        found = [each.answer(within_s=15.0) for each in started]
    assert found[0]["mean"] == 1.0, found
    if device == "cpu":
        return dict(found[0])
    with ranks(_capture, 1, device) as started:
        started[0].answer(within_s=10.0)
        code = started[0].ended(within_s=0.1)
        released = started[0].answer(within_s=nccl.ABORT_S) if code is None else None
    return {**found[0], "release beside a captured graph, s": released, "exit code": code}


def _start(place: Place) -> None:
    backend = chosen_backend("nccl" if place.device.type == "cuda" else None, on_gpu=False, sharded=True)
    group = place.group()
    dist.new_group(backend="gloo", group_desc=private.OF_CHECKPOINTS)
    peers = Peers(Standing(), backend=place.backend, recorded=None, deadlines=Deadlines())
    value = place.ones(4) * place.rank
    peers.wait(dist.all_reduce(value, async_op=True), device=value.device)
    mean = float(value.sum()) / 4
    place.send({"backend": backend, "mean": mean, "closed after, s": round(timed(group.close), 3)})
    place.receive()


def _capture(place: Place) -> None:
    nccl.set_environment()
    group = place.group()
    data = place.ones(1024)
    dist.all_reduce(data)
    place.settle()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        dist.all_reduce(data)
    place.send()
    place.send(round(timed(group.close), 3))


def recovered(device: str) -> Figures:
    """T6. Jobs under holdfast-run: every bit of an undisturbed run after a kill, an exception and a stop."""
    layouts = ["replicas"]
    try:
        check_version()
        layouts.append("sharded")
    except ValueError as error:
        skipped = str(error).partition(";")[0]
    else:
        skipped = ""
    found: dict[str, Any] = {"sharded": skipped} if skipped else {}
    for layout in layouts:
        calm, _ = _job(device, layout, {})
        for name in FAULTS if layout == "replicas" else ("SIGKILL",):
            fault = {**FAULTS[name], **({"phase": "vote"} if layout == "sharded" else {})}
            digests, seconds = _job(device, layout, fault)
            found[f"{layout}, {name}"] = {"same bits": digests == calm, "seconds": round(seconds, 1)}
    wrong = [name for name, row in found.items() if isinstance(row, dict) and not row["same bits"]]
    assert not wrong, f"other bits after {', '.join(wrong)}: {found}"
    return found


def _job(device: str, layout: str, fault: dict[str, Any]) -> tuple[dict[str, str], float]:
    with tempfile.TemporaryDirectory(prefix="holdfast-gpu-") as place:
        folder = Path(place)
        (folder / "fired").mkdir()
        command = [sys.executable, "-m", "holdfast_runtime.launcher", "--nproc-per-node", "3", "--spares", "1"]
        command += ["--deadlines", DEADLINES, "--rdzv-id", place, "--socket", str(folder / "launcher.sock")]
        command += [str(Path(__file__).with_name("job.py")), place, layout, device, str(STEPS)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path[:2])}
        environment |= {"NCCL_SOCKET_IFNAME": "lo", "NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"}
        environment["HOLDFAST_FAULTS"] = json.dumps([fault] if fault else [])
        environment["HOLDFAST_FAULTS_FIRED"] = f"{place}/fired"
        began = time.monotonic()
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=60.0 * PATIENCE[device], check=False
        )
        assert done.returncode == 0, f"{layout}, {fault}: {(done.stdout + done.stderr)[-1500:]}"
        assert len([*(folder / "fired").iterdir()]) == bool(fault), f"{fault} did not happen"
        return {each.name: each.read_text() for each in folder.glob("*.digest")}, time.monotonic() - began


def same_bits(device: str) -> Figures:
    """T9. A transformer with dropout, twice in new processes: with deterministic() and without."""
    found: dict[str, Any] = {}
    settings = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8", "TORCHINDUCTOR_DETERMINISTIC": "1"}
    for name, act, environment in (
        ("deterministic, fused", _bits_fused, settings),
        ("deterministic, foreach", _bits_foreach, settings),
        ("without, fused", _bits_free, {}),
    ):
        digests = []
        for _ in range(2):
            with ranks(act, 1, device, environment=environment) as started:
                digests.append(started[0].answer(within_s=25.0))
        found[name] = digests[0] == digests[1]
    assert all(same for name, same in found.items() if name.startswith("deterministic")), f"other bits: {found}"
    return found


def _bits_fused(place: Place) -> None:
    holdfast.deterministic()
    place.send(_trained(place, fused=True))


def _bits_foreach(place: Place) -> None:
    holdfast.deterministic()
    place.send(_trained(place, fused=False))


def _bits_free(place: Place) -> None:
    place.send(_trained(place, fused=True))


def _trained(place: Place, *, fused: bool) -> int:
    torch.manual_seed(7)
    small = place.device.type == "cpu"
    layer = nn.TransformerEncoderLayer(64 if small else 512, 8, dropout=0.1, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).to(place.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=fused, foreach=None if fused else True)
    width = 64 if small else 512
    for step in range(3 if small else 20):
        optimizer.zero_grad()
        torch.manual_seed(100 + step)
        model(torch.randn(4, 32, width, device=place.device)).square().mean().backward()
        optimizer.step()
    return digest_of(parameter.detach() for parameter in model.parameters())


def copied(device: str) -> Figures:
    """T7. Page-locked memory: time and rounding; the rate from the GPU alone and beside a computation."""
    on_gpu = device == "cuda"
    found: dict[str, Any] = {}
    for size in (5 * GB, 9 * GB, 17 * GB) if on_gpu else (GB // 100,):
        began = time.perf_counter()
        kept = torch.empty(size, dtype=torch.uint8, pin_memory=on_gpu)
        seconds = time.perf_counter() - began
        stats = torch.cuda.host_memory_stats() if on_gpu else {}
        held = {name: value for name, value in stats.items() if name.endswith("bytes.current")}
        found[f"{size / GB:g} GB"] = {"seconds": round(seconds, 3), **held}
        del kept
    size = 4 * GB if on_gpu else GB // 100
    source = torch.ones(size, dtype=torch.uint8, device=device)
    target = torch.empty(size, dtype=torch.uint8, pin_memory=on_gpu)
    found["GB/s"] = {"alone": _rate(source, target), "beside matmul": _rate(source, target, beside=_multiply(device))}
    return found


def _rate(source: torch.Tensor, target: torch.Tensor, *, beside: Callable[[], object] = lambda: None) -> float:
    if not source.is_cuda:
        return round(source.numel() / GB / timed(lambda: target.copy_(source)), 1)
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    beside()
    began = time.perf_counter()
    with torch.cuda.stream(stream):
        target.copy_(source, non_blocking=True)
    stream.synchronize()
    return round(source.numel() / GB / (time.perf_counter() - began), 1)


def _multiply(device: str) -> Callable[[], object]:
    size = 8192 if device == "cuda" else 64
    matrix = torch.randn(size, size, device=device)
    return lambda: [matrix @ matrix for _ in range(50)]


def digested(device: str) -> Figures:
    """T8. The digest of much memory: seconds, extra memory, and one flipped bit."""
    on_gpu = device == "cuda"
    size = min(20 * GB, torch.cuda.mem_get_info()[0] // 2) if on_gpu else GB // 100
    data = torch.ones(size, dtype=torch.uint8, device=device)
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    before = int(weighted_sum(data))
    seconds = timed(lambda: int(weighted_sum(data)))
    extra = torch.cuda.max_memory_allocated() - size if on_gpu else 0
    data[size // 3] ^= 4
    assert int(weighted_sum(data)) != before, "a flipped bit is not seen"
    return {"GB": size / GB, "seconds": round(seconds, 4), "extra memory, bytes": extra}


CHECKS = (
    Check("T10", "a broken context", "an AcceleratorError; the other threads live; the probe fails", 30, broken),
    Check("T11", "starts", "no error; the abort beside a captured graph does not return", 40, begun),
    Check("T6", "recoveries under holdfast-run", "the bits of an undisturbed run", 90, recovered),
    Check("T9", "the same bits", "equal with deterministic(); without it perhaps not", 45, same_bits),
    Check("T7", "snapshots", "5 GB take 8 of page-locked memory; about 55 GB/s alone", 25, copied),
    Check("T8", "the digest", "0.13 to 0.15 s and 600 MB for 20 GB", 10, digested),
)

if __name__ == "__main__":
    raise SystemExit(suite.main(CHECKS))
