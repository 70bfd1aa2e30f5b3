"""
Stand-in for ``docker``: ``cdk deploy`` can publish images to the embedded AWS.

The CDK CLI runs ``CDK_DOCKER`` with docker's commands inspect, build, login, tag, images, push. ``build`` only checks
the Dockerfile's sources and digests all inputs; ``push`` registers a manifest with that digest, so that tags and
digests resolve and change with the sources. Nothing can be pulled.
"""

import argparse
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from holdfast.localcloud.home import LocalCloudError, claim

NOTE = "nothing was built: no container engine, a stand-in of Holdfast's local cloud"
MANIFEST_TYPE = "application/vnd.docker.distribution.manifest.v2+json"
CONFIG_TYPE = "application/vnd.docker.container.image.v1+json"
REPOSITORY = re.compile(r"(?P<account>\d{12})\.dkr\.ecr\.(?P<region>[a-z0-9-]+)\.[^/]+/(?P<name>[^:]+):(?P<tag>.+)")
VARIABLE = re.compile(r"\$(?:\{(\w+)(?::[-+][^}]*)?\}|(\w+))")
HERE_DOCUMENT = re.compile(r"<<-?[\"']?(\w+)")
LOOPBACK = ("localhost", "127.0.0.1", "::1")
VALUE_FLAGS = ("--network", "--output", "--cache-from", "--cache-to", "--build-context", "--secret", "--ssh")


class StandInError(Exception):
    """The command cannot be done; the message goes to the CDK CLI."""


@dataclass(frozen=True, kw_only=True)
class Instruction:
    number: int
    name: str
    words: tuple[str, ...]
    flags: tuple[str, ...]


def instructions(text: str) -> Iterator[Instruction]:
    """Return the instructions of a Dockerfile, without comments and here-documents, continuations joined."""
    pending, begun, until = "", 0, ""
    for number, line in enumerate(text.splitlines(), start=1):
        if until:
            until = "" if line.strip() == until else until
            continue
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        begun = begun if pending else number
        pending += line.strip()
        if pending.endswith("\\"):
            pending = pending[:-1] + " "
            continue
        document = HERE_DOCUMENT.search(pending)
        until = document[1] if document else ""
        name, _, rest = pending.partition(" ")
        words = _words(rest.strip())
        flags = tuple(word for word in words if word.startswith("--"))
        plain = tuple(word for word in words if not word.startswith("--"))
        yield Instruction(number=begun, name=name.upper(), words=plain, flags=flags)
        pending = ""


def check(text: str, *, context: Path, arguments: Mapping[str, str]) -> None:
    """Check a Dockerfile. Raise StandInError for a base image without name, or missing sources of COPY and ADD."""
    known = dict(arguments)
    problems = []
    for one in instructions(text):
        if one.name == "ARG":
            for word in one.words:
                name, given, default = word.partition("=")
                if given:
                    known.setdefault(name, default)
        elif one.name == "FROM":
            if not one.words or VARIABLE.search(_expand(one.words[0], known)):
                problems.append(f"line {one.number}: no base image: {' '.join(one.words)}; give it with --build-arg")
        elif one.name in ("COPY", "ADD") and not any(flag.startswith("--from=") for flag in one.flags):
            missing = [word for word in _sources(one, known) if not _exists(context, word)]
            problems += [f"line {one.number}: {word} is not in the build context" for word in missing]
    if problems:
        raise StandInError("this Dockerfile cannot be built: " + "; ".join(problems))


def digest_of(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return f"sha256:{digest.hexdigest()}"


def manifest_of(*, context: Path, dockerfile: Path, settings: Mapping[str, object]) -> str:
    """Return the manifest of these sources' image; equal sources, equal manifest."""
    files = sorted(path for path in context.rglob("*") if path.is_file() and path != dockerfile)
    parts = [dockerfile.read_bytes(), json.dumps(settings, sort_keys=True).encode()]
    for path in files:
        parts += [path.relative_to(context).as_posix().encode(), path.read_bytes()]
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": {"mediaType": CONFIG_TYPE, "size": sum(map(len, parts)), "digest": digest_of(parts)},
        "layers": [],
        "annotations": {"holdfast.stand-in": NOTE},
    }
    return json.dumps(manifest, sort_keys=True)


class ManifestStore:
    """Manifests by tag, a file each, since the CDK CLI runs several processes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, tag: str) -> str | None:
        path = self._path(tag)
        return json.loads(path.read_text())["manifest"] if path.exists() else None

    def put(self, tag: str, manifest: str) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        unfinished = self._path(tag).with_suffix(f".{os.getpid()}")
        unfinished.write_text(json.dumps({"tag": tag, "manifest": manifest}))
        unfinished.replace(self._path(tag))

    def tags(self) -> list[str]:
        return sorted(json.loads(path.read_text())["tag"] for path in self._folder.glob("*.json"))

    def _path(self, tag: str) -> Path:
        return self._folder / f"{hashlib.sha256(tag.encode()).hexdigest()}.json"


def build(options: argparse.Namespace, images: ManifestStore) -> None:
    context = Path(options.context).resolve()
    dockerfile = context / options.file
    if not dockerfile.is_file():
        raise StandInError(f"no Dockerfile {dockerfile}")
    arguments = dict(item.partition("=")[::2] for item in options.build_arg)
    check(dockerfile.read_text(), context=context, arguments=arguments)
    settings = {"arguments": arguments, "target": options.target, "platform": options.platform}
    images.put(options.tag, manifest_of(context=context, dockerfile=dockerfile, settings=settings))
    print(f"{options.tag}: {NOTE}", file=sys.stderr)


def push(tag: str, images: ManifestStore) -> None:
    manifest, place = images.get(tag), REPOSITORY.fullmatch(tag)
    if manifest is None:
        raise StandInError(f"no image {tag} on this machine")
    if place is None:
        raise StandInError(f"got {tag}; allowed: a repository of ECR, ACCOUNT.dkr.ecr.REGION.amazonaws.com/NAME:TAG")
    endpoint = os.environ.get("AWS_ENDPOINT_URL", "")
    if urlsplit(endpoint).hostname not in LOOPBACK:
        raise StandInError(
            f"got AWS_ENDPOINT_URL '{endpoint}'; allowed: the embedded AWS on this machine, because {NOTE}; "
            "for AWS, unset CDK_DOCKER and install docker, or set it to podman"
        )
    import boto3
    from botocore.exceptions import ClientError

    ecr = boto3.client("ecr", endpoint_url=endpoint, region_name=place["region"])
    try:
        ecr.put_image(
            repositoryName=place["name"],
            registryId=place["account"],
            imageManifest=manifest,
            imageDigest=f"sha256:{hashlib.sha256(manifest.encode()).hexdigest()}",
            imageManifestMediaType=MANIFEST_TYPE,
            imageTag=place["tag"],
        )
    except ClientError as error:
        if error.response["Error"]["Code"] != "ImageAlreadyExistsException":
            raise StandInError(f"{tag}: {error}") from None
    print(f"{tag}: registered; {NOTE}", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a docker command; exit code 1 on failure, which the CDK CLI takes for "no such image" on inspect."""
    options = _parser().parse_args(arguments)
    home = Path(os.environ.get("HOLDFAST_HOME", "/var/lib/holdfast"))
    images = ManifestStore(home / "docker-stand-in")
    try:
        claim(home)
        return _run(options, images)
    except (StandInError, LocalCloudError) as error:
        print(error, file=sys.stderr)
        return 1


def _run(options: argparse.Namespace, images: ManifestStore) -> int:
    match options.command:
        case "build":
            build(options, images)
        case "push":
            push(options.tag, images)
        case "tag":
            manifest = images.get(options.source)
            if manifest is None:
                raise StandInError(f"no image {options.source} on this machine")
            images.put(options.target, manifest)
        case "inspect":
            return 0 if images.get(options.tag) is not None else 1
        case "images":
            desired = options.filter.rpartition(":")[2]
            print("\n".join(tag for tag in images.tags() if "/" in tag and tag.rpartition(":")[2] == desired))
        case "login":
            sys.stdin.read()  # the password, which the embedded AWS does not check
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="docker", description=NOTE, allow_abbrev=False)
    parser.add_argument("--config", help="not needed")
    commands = parser.add_subparsers(dest="command", required=True)
    of_build = commands.add_parser("build", allow_abbrev=False)
    of_build.add_argument("--build-arg", action="append", default=[])
    of_build.add_argument("--tag", required=True)
    of_build.add_argument("--target")
    of_build.add_argument("--file", default="Dockerfile")
    of_build.add_argument("--platform")
    of_build.add_argument("--no-cache", action="store_true")
    for flag in VALUE_FLAGS:
        of_build.add_argument(flag, action="append")
    of_build.add_argument("context")
    for name in ("inspect", "push"):
        commands.add_parser(name).add_argument("tag")
    of_tag = commands.add_parser("tag")
    of_tag.add_argument("source")
    of_tag.add_argument("target")
    of_images = commands.add_parser("images")
    of_images.add_argument("--format")
    of_images.add_argument("--filter", default="")
    of_login = commands.add_parser("login")
    of_login.add_argument("--username")
    of_login.add_argument("--password-stdin", action="store_true")
    of_login.add_argument("server")
    return parser


def _words(rest: str) -> list[str]:
    if rest.startswith("["):
        try:
            return [str(word) for word in json.loads(rest)]
        except ValueError:
            pass
    return rest.split()


def _expand(text: str, known: Mapping[str, str]) -> str:
    return VARIABLE.sub(lambda match: known.get(match[1] or match[2], match[0]), text)


def _sources(one: Instruction, known: Mapping[str, str]) -> list[str]:
    expanded = [_expand(word.strip("\"'"), known) for word in one.words[:-1]]
    return [word for word in expanded if "://" not in word and not word.startswith("<<") and not VARIABLE.search(word)]


def _exists(context: Path, source: str) -> bool:
    relative = source.lstrip("/")
    if relative in ("", "."):
        return True
    return any(True for _ in context.glob(relative))
