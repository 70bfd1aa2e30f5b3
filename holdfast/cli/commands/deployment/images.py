"""``holdfast images``: the container images of the local cloud, for ``srun --container-image`` and for pods."""

import contextlib
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.cli.terminal import Command, CommandError, console, print_json
from holdfast.localcloud import from_environment

app = typer.Typer(no_args_is_help=True, help="Container images of the local cloud, for srun and for pods.")
_JSON = Annotated[bool, typer.Option("--json", help="Print as JSON.")]


@app.command("list", cls=Command)
def list_images(json: _JSON = False) -> None:
    """Names that --container-image and pods may use on the local cloud."""
    images = _store().list()
    if json:
        print_json([{"name": image.name, "digest": image.digest} for image in images])
        return
    for image in images:
        console.print(f"{image.name}  {image.digest}", soft_wrap=True, highlight=False)
    if not images:
        console.print("no images; holdfast images build makes the training image, holdfast images add takes others")


@app.command(cls=Command)
def build(
    containers: Annotated[
        Path | None, typer.Option(help="The folder containers/ of a checkout. Default: of this Holdfast.")
    ] = None,
    name: Annotated[str, typer.Option(help="What jobs call it.")] = "holdfast-training:latest",
    json: _JSON = False,
) -> None:
    """Build the training image, without EFA and on a base made here; takes minutes."""
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


@app.command(cls=Command)
def add(
    source: Annotated[str, typer.Argument(help="An archive, or as skopeo names it: oci:FOLDER, docker://IMAGE, ...")],
    name: Annotated[str, typer.Argument(help="What jobs call it: [REGISTRY#]IMAGE[:TAG].")],
    json: _JSON = False,
) -> None:
    """Unpack an image for the nodes."""
    from holdfast.localcloud.containers import ImageError, add_image

    with _changed_store(verb="images add") as store:
        try:
            image = add_image(store, source=source, name=name)
        except ImageError as error:
            raise CommandError(str(error)) from error
    _added(image, json=json)


@app.command(cls=Command)
def remove(name: Annotated[str, typer.Argument(help="As holdfast images list shows it.")]) -> None:
    """Forget a name, and the image when it has no other; no step may be running in it."""
    from holdfast.localcloud.containers import ImageError

    with _changed_store(verb="images remove") as store:
        try:
            store.remove(name)
        except ImageError as error:
            raise CommandError(str(error)) from error


def _shipped() -> Path:
    """In a wheel it lies with the stacks, in a checkout at the top."""
    found = importlib.util.find_spec("holdfast_stacks")
    shipped = Path(found.origin).parent / "data" / "containers" if found and found.origin else None
    return shipped if shipped is not None and shipped.is_dir() else Path(__file__).resolve().parents[4] / "containers"


def _store() -> Any:
    from holdfast.localcloud.containers import ImageStore

    return ImageStore(home=from_environment().home)


@contextlib.contextmanager
def _changed_store(*, verb: str) -> Iterator[Any]:
    if os.geteuid() != 0:
        raise CommandError("images are kept with the files and owners that they have and need root; run it with sudo")
    local = from_environment()
    with local.held(verb=verb):
        local.claim()
        yield _store()


def _added(image: Any, *, json: bool) -> None:
    if json:
        print_json({"name": image.name, "digest": image.digest})
    else:
        console.print(
            f"{image.name} is there, for pods and for: srun --container-image={image.name} ...", soft_wrap=True
        )
