"""``holdfast images``: container images of the local cloud, for ``srun --container-image`` and pods."""

import contextlib
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.cli.terminal import JSON, Command, CommandError, console, print_json, sudo_command
from holdfast.localcloud import from_environment

app = typer.Typer(no_args_is_help=True, help="Manage container images of the local cloud.")
_JSON = Annotated[bool, JSON]


@app.command("list", cls=Command, epilog="Example: holdfast images list")
def list_images(json: _JSON = False) -> None:
    """List images that srun --container-image and pods can use."""
    images = _store().list()
    if json:
        print_json([{"name": image.name, "digest": image.digest} for image in images])
        return
    for image in images:
        console.print(f"{image.name}  {image.digest}", soft_wrap=True, highlight=False)
    if not images:
        console.print("no images; to add some: holdfast images build, or holdfast images add")


@app.command(cls=Command, epilog="Example: sudo holdfast images build")
def build(
    containers: Annotated[
        Path | None, typer.Option(help="Folder containers/ of a checkout. Default: the installed one.")
    ] = None,
    name: Annotated[str, typer.Option(help="Image name for jobs.")] = "holdfast-training:latest",
    json: _JSON = False,
) -> None:
    """
    Build the training image. Takes minutes.

    Without EFA, and on a base image that is built here.
    """
    from holdfast.localcloud.containers import ImageError, build_training_image

    folder = _shipped() if containers is None else containers
    if not (folder / "training" / "Dockerfile").is_file():
        raise CommandError(
            f"got --containers {folder}; allowed: the folder containers/ of a checkout of Holdfast; "
            "the distribution holdfast-constructs brings one: pip install holdfast-constructs"
        )
    with _changed_store(verb="images build") as store:
        try:
            image = build_training_image(
                store, containers=folder, name=name, progress=(lambda _: None) if json else console.print
            )
        except ImageError as error:
            raise CommandError(str(error)) from error
    _added(image, json=json)


@app.command(cls=Command, epilog="Example: sudo holdfast images add docker://debian:12 debian:12")
def add(
    source: Annotated[str, typer.Argument(help="Archive, or source of skopeo: oci:FOLDER, docker://IMAGE, ...")],
    name: Annotated[str, typer.Argument(help="Image name for jobs: [REGISTRY#]IMAGE[:TAG].")],
    json: _JSON = False,
) -> None:
    """Add an image from an archive or a registry."""
    from holdfast.localcloud.containers import ImageError, add_image

    with _changed_store(verb="images add") as store:
        try:
            image = add_image(store, source=source, name=name)
        except ImageError as error:
            raise CommandError(str(error)) from error
    _added(image, json=json)


@app.command(cls=Command, epilog="Example: sudo holdfast images remove debian:12")
def remove(name: Annotated[str, typer.Argument(help="Image name, as holdfast images list prints it.")]) -> None:
    """
    Remove an image name, and the image with its last name.

    Refused while a job step runs in the image.
    """
    from holdfast.localcloud.containers import ImageError

    with _changed_store(verb="images remove") as store:
        try:
            store.remove(name)
        except ImageError as error:
            raise CommandError(str(error)) from error


def _shipped() -> Path:
    found = importlib.util.find_spec("holdfast_stacks")
    shipped = Path(found.origin).parent / "data" / "containers" if found and found.origin else None
    return shipped if shipped is not None and shipped.is_dir() else Path(__file__).resolve().parents[4] / "containers"


def _store() -> Any:
    from holdfast.localcloud.containers import ImageStore

    return ImageStore(home=from_environment().home)


@contextlib.contextmanager
def _changed_store(*, verb: str) -> Iterator[Any]:
    if os.geteuid() != 0:
        raise CommandError(f"images keep the owners of their files, which requires root; run: {sudo_command()}")
    local = from_environment()
    with local.held(verb=verb):
        local.claim()
        yield _store()


def _added(image: Any, *, json: bool) -> None:
    if json:
        print_json({"name": image.name, "digest": image.digest})
    else:
        console.print(f"{image.name} added, for pods and for: srun --container-image={image.name} ...", soft_wrap=True)
