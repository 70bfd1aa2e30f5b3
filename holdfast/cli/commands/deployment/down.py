"""``holdfast down``: end the local cloud and leave nothing of it behind."""

import os

from holdfast.cli.terminal import CommandError, console, step
from holdfast.localcloud import from_environment


def down() -> None:
    """Remove the local cloud: nodes, processes, namespaces, mounts, files. Safe to repeat, also after a crash."""
    local = from_environment()
    if not local.home.is_dir() or not (local.is_claimed() or any(local.home.iterdir())):
        console.print(f"nothing is up in {local.home}")
        return
    if os.geteuid() != 0:
        raise CommandError("down removes namespaces and mounts and needs root; run it with sudo")
    if local.is_claimed():
        console.print("down deletes nodes, file systems, buckets and logs of this local cloud, and all that is in them")
    with step("take the local cloud down") as progress:
        progress.update(str(local.home))
        left = local.remove()
    if left:
        console.print(f"left in {local.home}, because Holdfast did not make it: {', '.join(left)}", markup=False)
