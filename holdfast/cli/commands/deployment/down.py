import contextlib
import os
from collections.abc import Iterator

from holdfast.cli.terminal import CommandError, console, step, sudo_command
from holdfast.localcloud import LocalCloud, from_environment
from holdfast.localcloud.processes import HeldError

ENDS_WITHIN_S = 90.0
"""Of a command that is ended: it takes down what it began."""


def down() -> None:
    """
    Remove the local cloud with its nodes and data.

    Removes processes, namespaces, mounts and files. Safe to repeat, also after a crash.
    """
    local = from_environment()
    if not local.home.is_dir() or not any(local.home.iterdir()):
        console.print(f"nothing is up in {local.home}")
        return
    if os.geteuid() != 0:
        raise CommandError(f"down removes namespaces and mounts, which requires root; run: {sudo_command()}")
    local.recognise()
    with _held(local):
        if not local.is_claimed():
            console.print(f"nothing is up in {local.home}")
            return
        console.print("deleting nodes, file systems, buckets and logs of this local cloud with all their data")
        with step("take the local cloud down") as progress:
            progress.update(str(local.home))
            left = local.remove()
    if left:
        console.print(f"left in {local.home}, not created by Holdfast: {', '.join(left)}", markup=False)


@contextlib.contextmanager
def _held(local: LocalCloud) -> Iterator[None]:
    ended = 0
    with contextlib.ExitStack() as stack:
        while True:
            try:
                stack.enter_context(local.held(verb="down"))
                break
            except HeldError as error:
                holder = error.holder
                if holder is None or holder.verb == "down" or holder.pid == ended:
                    raise
            with step(f"end {holder}") as progress:
                progress.update(f"at most {ENDS_WITHIN_S:g} s")
                holder.process.end(timeout_s=ENDS_WITHIN_S)
            ended = holder.pid
        yield
