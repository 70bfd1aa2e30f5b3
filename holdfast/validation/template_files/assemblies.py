"""
Templates on disk: a file with nested stacks beside it, or a CDK cloud assembly with assets.

A nested stack is read if its ``TemplateURL`` is a path, as ``aws cloudformation package`` takes it, or names an asset.
"""

import json
from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from holdfast.validation.cloudformation import Template
from holdfast.validation.template_files.loops import unrolled
from holdfast.validation.template_files.reading import no_resources, read_text

_STACKS = {"AWS::CloudFormation::Stack": "TemplateURL", "AWS::Serverless::Application": "Location"}
"""Nested stacks, and the property with the path of their template."""
_DEEPEST = 10
_NESTED = ".nested.template.json"
_LARGEST_SCRIPT = 1 << 20
"""Bytes. What is larger is no lifecycle script; its name counts, its text does not."""


def read_templates(path: Path) -> list[Template]:
    """
    Templates of a file, or of a cloud assembly with all stages.

    Raises:
        Unreadable: the file, or one nested in it, is not a template.
        ValueError: the folder is not an assembly.
    """
    if path.is_dir():
        return list(_assembly(path))
    template = read_template(path)
    if not template.section("Resources"):
        raise no_resources(template)
    return [template, *nested_templates(path, template), *_beside(template, (path.resolve(),))]


def read_template(path: Path, *, region: str | None = None, account: str | None = None) -> Template:
    """Read one template; raises Unreadable."""
    read = read_text(path)
    return Template(
        body=unrolled(read.body),
        path=str(path),
        region=region,
        account=account,
        files=_Assets(path.parent).texts,
        beside=partial(_is_beside, path.parent),
        faults=read.faults,
    )


def nested_templates(path: Path, template: Template) -> Iterator[Template]:
    for digest, asset in _Assets(path.parent).places.items():
        if asset.name.endswith(_NESTED) and digest in json.dumps(template.body.get("Resources")):
            yield Template(
                body=read_text(asset).body,
                path=str(asset),
                region=template.region,
                account=template.account,
                files=template.files,
                beside=partial(_is_beside, asset.parent),
                asset=digest,
            )


def _beside(template: Template, around: tuple[Path, ...]) -> Iterator[Template]:
    """Nested stacks whose URL is a path, recursively; circular ones are left out."""
    folder = around[-1].parent
    for logical_id, resource in template.section("Resources").items():
        if not isinstance(resource, Mapping) or str(resource.get("Type")) not in _STACKS:
            continue
        properties = resource.get("Properties")
        place = properties.get(_STACKS[resource["Type"]]) if isinstance(properties, Mapping) else None
        if not isinstance(place, str) or not _is_beside(folder, place):
            continue
        path = (folder / place).resolve()
        if path in around or len(around) > _DEEPEST:
            continue
        read = read_text(path)
        nested = Template(
            body=unrolled(read.body),
            path=str(Path(template.path).parent / place),
            region=template.region,
            account=template.account,
            files=template.files,
            beside=partial(_is_beside, path.parent),
            parent=(template.path, logical_id),
            faults=read.faults,
        )
        yield nested
        yield from _beside(nested, (*around, path))


def _is_beside(folder: Path, place: str) -> bool:
    try:
        return "://" not in place and (folder / place).is_file()
    except (OSError, ValueError):  # a name that no file can have
        return False


def _assembly(folder: Path) -> Iterator[Template]:
    if not (folder / "manifest.json").is_file():
        raise ValueError(
            f"{folder} is a folder without manifest.json; allowed: a file, or what cdk synth writes (cdk.out)"
        )
    manifest = _json(folder / "manifest.json")
    for artifact in manifest.get("artifacts", {}).values():
        properties = artifact.get("properties", {})
        if artifact.get("type") == "cdk:cloud-assembly":
            yield from _assembly(folder / properties["directoryName"])
        elif artifact.get("type") == "aws:cloudformation:stack":
            account, _, region = artifact["environment"].removeprefix("aws://").partition("/")
            path = folder / properties["templateFile"]
            template = read_template(
                path,
                region=None if region.startswith("unknown") else region,
                account=None if account.startswith("unknown") else account,
            )
            yield template
            yield from nested_templates(path, template)


class _Assets:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def places(self) -> Mapping[str, Path]:
        found = {}
        for manifest in sorted(self._folder.glob("*.assets.json")):
            for digest, asset in _json(manifest).get("files", {}).items():
                source = asset.get("source", {}).get("path")
                if source is not None:
                    found[digest] = self._folder / source
        return found

    def texts(self, digest: str) -> Mapping[str, str] | None:
        """Texts in a folder asset, by name; None if it is missing, or an archive."""
        asset = self.places.get(digest)
        if asset is None or not asset.is_dir():
            return None
        return {file.relative_to(asset).as_posix(): _text(file) for file in sorted(asset.rglob("*")) if file.is_file()}


def _text(file: Path) -> str:
    if file.stat().st_size > _LARGEST_SCRIPT:
        return ""
    return file.read_bytes().decode(errors="replace")


def _json(path: Path) -> dict[str, Any]:
    try:
        body = json.loads(path.read_bytes())
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror.lower() if error.strerror else 'it cannot be read'}") from error
    except ValueError as error:
        raise ValueError(f"{path}: got something that is not JSON ({error}); give a synthesised template") from error
    if not isinstance(body, dict):
        raise ValueError(f"{path}: got a {type(body).__name__}; allowed: a JSON object")  # noqa: TRY004 - as above
    return body
