"""
Runs a ported script as a rank, records its life, and kills its process once at the drawn moment.

The environment has ``OTHER_SCRIPT``, the order of ``other_jobs.run_job``. In its folder ``record`` are written

    life.RANK.jsonl    finished updates with the digest of the parameters
    places.RANK.jsonl  places of the program's life with their times: start, step, evaluation, save
    out.PID            what it prints
    fired              where the kill struck
    result.RANK        digest at the end of the script
"""

import hashlib
import json
import os
import runpy
import signal
import sys
import threading
import time
import warnings
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn

import holdfast_runtime as holdfast

ORDER: dict[str, Any] = json.loads(os.environ["OTHER_SCRIPT"])
RECORD = Path(ORDER["record"])
SAVE_S, PAUSE_S = 0.06, 0.002
"""Length that a save has at least, as on a file system of a cluster; time between two looks at the main thread."""
BEGUN = time.monotonic()
MAIN = threading.main_thread().ident
runs: list[holdfast.Run] = []
models: list[nn.Module] = []


def main() -> None:
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    watch()
    if ORDER["filled"]:
        fill()
    threading.Thread(target=observe, daemon=True).start()
    script = Path(ORDER["script"])
    sys.path[:0] = [str(script.parent), *ORDER["paths"]]
    sys.argv = [script.name, *ORDER["arguments"]]
    sys.stdout = Copied(RECORD / f"out.{os.getpid()}")  # type: ignore[assignment]
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit as end:
        if isinstance(end, holdfast.StoppedError) or end.code not in (None, 0):  # a spare is stopped with 0
            raise
    if runs:
        (RECORD / f"result.{runs[-1].rank}").write_text(digest())


class Copied:
    """Standard output that is written to a file as well."""

    def __init__(self, path: Path) -> None:
        self._file, self._out = path.open("a", buffering=1), sys.stdout

    def write(self, text: str) -> int:
        self._file.write(text)
        return self._out.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)


def watch() -> None:
    begin, save = holdfast.Run.__init__, torch.save

    def slow_save(*given: Any, **named: Any) -> None:
        save(*given, **named)
        time.sleep(SAVE_S)

    def saved(*given: Any, **named: Any) -> None:
        of_runtime = "holdfast_runtime" in sys._getframe(1).f_code.co_filename
        (save if of_runtime else slow_save)(*given, **named)

    def watched_begin(run: holdfast.Run, model: nn.Module, *given: Any, **named: Any) -> None:
        after = named.pop("after_update", None)

        def finished(number: int) -> None:
            if after is not None:
                after(number)
            append(f"life.{run.rank}.jsonl", {"step": number, "digest": digest()})

        models.append(model)
        begin(run, model, *given, after_update=finished, **named)
        runs.append(run)

    holdfast.Run.__init__, torch.save = watched_begin, saved  # type: ignore[method-assign,assignment]


def fill() -> None:
    """Give parameters of ``to_empty`` a value: two runs would begin with whatever was in memory."""
    to_empty = nn.Module.to_empty

    @torch.no_grad()
    def filled(module: nn.Module, **named: Any) -> nn.Module:
        to_empty(module, **named)
        for parameter in module.parameters():
            parameter.fill_(0.01)
        return module

    nn.Module.to_empty = filled  # type: ignore[method-assign,assignment]


def digest() -> str:
    total = hashlib.sha256()
    for parameter in models[-1].parameters():
        local = parameter.to_local() if hasattr(parameter, "to_local") else parameter
        assert isinstance(local, Tensor)
        total.update(local.detach().contiguous().view(torch.uint8).numpy().tobytes() if local.numel() else b"")
    return total.hexdigest()[:12]


def observe() -> None:
    """Note each place of the life; strike where and when it was drawn."""
    kill, last, armed = ORDER["kill"], ("", -1), 0.0
    while True:
        here, line = place()
        now = time.monotonic()
        rank = runs[-1].rank if runs else int(os.environ.get("RANK", -1))
        if here != last and rank >= 0:
            append(f"places.{rank}.jsonl", {"pid": os.getpid(), "place": here, "at": now - BEGUN})
            last = here
        if kill and rank == kill["rank"] and here == (kill["place"], kill["step"]) and not armed:
            armed = now + kill["after_s"]
        if armed and now >= armed and not (RECORD / "fired").exists():
            strike({"rank": rank, "place": here, "line": line, "pid": os.getpid()})
        time.sleep(PAUSE_S)


def place() -> tuple[tuple[str, int], str]:
    """Return the place of the main thread with the number of finished updates, and the line of the script."""
    frame: FrameType | None = sys._current_frames()[MAIN or 0]
    name, line = "step" if runs else "start", ""
    while frame is not None:
        code = frame.f_code
        if code.co_name == "slow_save":
            name = "save"
        if code.co_name in ORDER["evaluation"] and name != "save":
            name = "evaluation"
        if code.co_filename == ORDER["script"]:
            line = line or f"{code.co_name}:{frame.f_lineno}"
        frame = frame.f_back
    return (name, runs[-1].step if runs else 0), line


def strike(proof: dict[str, Any]) -> None:
    with (RECORD / "fired").open("w") as file:
        json.dump(proof, file)
        file.flush()
        os.fsync(file.fileno())
    os.kill(os.getpid(), signal.SIGKILL)


def append(name: str, value: dict[str, Any]) -> None:
    with (RECORD / name).open("a") as file:
        file.write(json.dumps(value) + "\n")


if __name__ == "__main__":
    main()
