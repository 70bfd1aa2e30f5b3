"""``holdfast kubernetes``: binaries of EKS clusters in the local cloud."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.deployed import CLUSTER, ENVIRONMENT, PROFILE, REGION
from holdfast.cli.terminal import JSON, Command, CommandError, console, print_json, step

if TYPE_CHECKING:
    from holdfast.localcloud.kubernetes.binaries import Binaries

app = typer.Typer(no_args_is_help=True, help="Manage the Kubernetes binaries of the local cloud.")
_JSON = Annotated[bool, JSON]


@app.command(cls=Command, epilog="Example: holdfast kubernetes build")
def build(
    official: Annotated[
        Path | None,
        typer.Option("--from", help="Folder of official binaries. Default: compile Debian's source package."),
    ] = None,
    intended: Annotated[
        str | None,
        typer.Option("--for", metavar="ENV", help="Check this machine for the cluster of this file first."),
    ] = None,
    keep_work: Annotated[bool, typer.Option("--keep-work", help="Keep sources and compiled parts (2 GiB).")] = False,
    json: _JSON = False,
) -> None:
    """Build the binaries; an interrupted build resumes."""
    from holdfast.localcloud.kubernetes.binaries import VARIABLE, cache_directory
    from holdfast.localcloud.kubernetes.binaries import build as build_binaries

    if official is not None and not official.is_dir():
        raise CommandError(f"got --from {official}; allowed: a folder with the five components of Kubernetes")
    if intended is not None:
        _check_machine(intended)
    cache = cache_directory(os.environ)
    where = None if official is None else official.absolute()
    binaries = build_binaries(cache=cache, official=where, report=_shown, keep_work=keep_work)
    _print(binaries, json=json)
    if official is not None and not json:
        console.print(f"use them with: export {VARIABLE}={binaries.directory}", soft_wrap=True)


@app.command(cls=Command, epilog="Example: holdfast kubernetes show")
def show(json: _JSON = False) -> None:
    """Show version, size and folder of the binaries."""
    from holdfast.localcloud.kubernetes.binaries import BUILD_TAKES, RECORDS, VARIABLE, find_binaries, wants_records

    binaries = find_binaries(os.environ)
    if binaries is not None:
        _print(binaries, json=json)
    elif json:
        print_json(None)
    elif wants_records(os.environ):
        console.print(f"{VARIABLE} is {RECORDS}: clusters of EKS are records only")
    else:
        console.print(f"Kubernetes binaries not found; run: holdfast kubernetes build ({BUILD_TAKES})")


@app.command(cls=Command, epilog="Example: holdfast kubernetes token --environment eks")
def token(
    environment: Annotated[str | None, ENVIRONMENT] = None,
    cluster: Annotated[str | None, CLUSTER] = None,
    region: Annotated[str | None, REGION] = None,
    profile: Annotated[str | None, PROFILE] = None,
) -> None:
    """
    Print a token for kubectl, as an exec plugin.

    The token is the caller's, or that of an administrator role which the caller may assume.
    """
    from holdfast.cli.deployed import credential, locate
    from holdfast.cli.kubernetes import exec_credential

    context = locate(environment=environment, cluster=cluster, region=region, profile=profile)
    secret, expires_at = credential(context)
    print_json(exec_credential(secret, expires_at=expires_at))


def _check_machine(environment: str) -> None:
    from holdfast.cli.definitions import judged_definition
    from holdfast.cli.deploying import check_machine, node_count
    from holdfast.environments import environment_file
    from holdfast.localcloud import from_environment

    definition = judged_definition(environment_file(environment))
    with step("check this machine") as progress:
        progress.update(
            check_machine(
                home=from_environment().home,
                orchestrator=definition.orchestrator,
                nodes=node_count(definition),
                builds=True,
            )
        )


@contextlib.contextmanager
def _shown(title: str) -> Iterator[Callable[[str], None]]:
    with step(title) as progress:
        yield progress.update


def _print(binaries: "Binaries", *, json: bool) -> None:
    info = _info(binaries)
    if json:
        print_json(info)
        return
    tried = "" if binaries.tried else "  (not tried with Holdfast)"
    console.print(f"Kubernetes {binaries.version}{tried}  {info['size_mib']} MiB  {binaries.directory}", soft_wrap=True)
    if info["cpu_s"] is not None:
        again = f", in {info['attempts']} attempts: seconds of those that ended" if info["attempts"] > 1 else ""
        console.print(f"built in {info['wall_s']:.0f} s with {info['cpu_s']:.0f} s of CPU{again}", soft_wrap=True)


def _info(binaries: "Binaries") -> dict[str, Any]:
    record = binaries.record()
    size = sum(path.stat().st_size for path in binaries.directory.rglob("*") if path.is_file())
    return {
        "version": binaries.version,
        "tried": binaries.tried,
        "directory": str(binaries.directory),
        "size_mib": round(size / 2**20),
        **{key: record.get(key) for key in ("wall_s", "cpu_s", "cpus", "attempts", "steps", "packages", "built")},
    }
