"""
The wheels that this repository makes: what is in each, as pyproject.toml says it under ``tool.holdfast``.

What depends on it is derived here: the folders that a wheel is built from, its metadata, and a table for the site.
"""

import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomllib

import markdown_table

ROOT = Path(__file__).resolve().parents[1]
LICENSES = ("LICENSE", "NOTICE")
NEWEST_PYTHON = 14
"""Of Python 3, that the tests run programs with."""


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """
    One wheel.

    Args:
        packages: Import names, each in one wheel only.
        requires: Requirements; ours without a range, since all have one version.
        extras: Optional requirements by name.
        data: Folders shipped as files, by their place in the wheel.
        files: Single files that are shipped, by the folder in the wheel.
        left_out: Files and folders that are not shipped.
    """

    name: str
    version: str
    summary: str
    packages: tuple[str, ...]
    python: str = ">=3.11"
    requires: tuple[str, ...] = ()
    extras: Mapping[str, tuple[str, ...]]
    scripts: Mapping[str, str]
    data: Mapping[str, str]
    files: Mapping[str, tuple[str, ...]]
    left_out: tuple[str, ...] = ()

    def folders(self) -> Mapping[str, Path]:
        """Folders of the repository, by their place in the wheel."""
        packages = {name.replace(".", "/"): folder_of(name) for name in self.packages}
        return {**packages, **{place: ROOT / folder for place, folder in self.data.items()}}

    def metadata(self) -> str:
        """pyproject.toml for a folder with the wheel's content in ``src``."""
        own = {name for name in distributions() if name != self.name}
        pinned = [f"{each}=={self.version}" if each in own else each for each in self.requires]
        lines = [
            f"[build-system]\nrequires = {json.dumps(settings()['build-system']['requires'])}",
            'build-backend = "setuptools.build_meta"\n',
            "[project]",
            *(
                f"{key} = {json.dumps(value)}"
                for key, value in {
                    "name": self.name,
                    "version": self.version,
                    "description": self.summary,
                    "license": settings()["project"]["license"],
                    "license-files": LICENSES,
                    "requires-python": self.python,
                    "classifiers": self.classifiers(),
                    "dependencies": pinned,
                }.items()
            ),
            f'readme = {{ content-type = "text/markdown", text = {json.dumps(self.description())} }}',
            *(f"urls = {{ Documentation = {json.dumps(url)} }}" for url in [site_url()] if url),
            "[project.optional-dependencies]",
            *(f"{name} = {json.dumps(list(needs))}" for name, needs in self.extras.items()),
            "[project.scripts]",
            *(f"{name} = {json.dumps(target)}" for name, target in self.scripts.items()),
            '[tool.setuptools.packages.find]\nwhere = ["src"]',
            '[tool.setuptools.package-data]\n"*" = ["*"]',
        ]
        return "\n".join(lines) + "\n"

    def description(self) -> str:
        """Text of the page that a package index shows."""
        others = "\n".join(f"- `{each.name}`: {each.summary}" for each in distributions().values())
        return (
            f"# {self.name}\n\n{self.summary}.\n\nA part of Holdfast: {settings()['project']['description']}.\n"
            f"All of its wheels have one version:\n\n{others}\n\n"
            "`holdfast init` of `holdfast-hyperpod` writes a repository to begin with.\n"
        )

    def classifiers(self) -> list[str]:
        """Trove classifiers. The licence is an expression of its own (PEP 639)."""
        oldest = int(self.python.removeprefix(">=3."))
        return [
            "Development Status :: 3 - Alpha",
            "Environment :: GPU :: NVIDIA CUDA",
            "Intended Audience :: System Administrators",
            "Operating System :: POSIX :: Linux",
            *(f"Programming Language :: Python :: 3.{minor}" for minor in range(oldest, NEWEST_PYTHON + 1)),
            "Topic :: System :: Clustering",
            "Typing :: Typed",
        ]


@functools.cache
def settings() -> Mapping[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def site_url() -> str:
    """Where the documentation is served; empty until it is."""
    return str(settings()["tool"]["holdfast"]["site-url"])


def package_roots() -> tuple[Path, ...]:
    return tuple(ROOT / root for root in settings()["tool"]["holdfast"]["package-roots"])


@functools.cache
def distributions() -> Mapping[str, Distribution]:
    """All by name, dependencies first."""
    return {name: _distribution(name, text) for name, text in settings()["tool"]["holdfast"]["distributions"].items()}


def whole() -> Distribution:
    """All packages of the wheels in one, with the pinned requirements of this repository: for ``pip install .``."""
    project, every = settings()["project"], distributions().values()
    return Distribution(
        name=project["name"],
        version=project["version"],
        summary=project["description"],
        packages=tuple(package for each in every for package in each.packages),
        python=project["requires-python"],
        requires=tuple(project["dependencies"]),
        extras={extra: tuple(needs) for extra, needs in project["optional-dependencies"].items()},
        scripts={command: target for each in every for command, target in each.scripts.items()},
        data={place: folder for each in every for place, folder in each.data.items()},
        files={place: names for each in every for place, names in each.files.items()},
        left_out=tuple(path for each in every for path in each.left_out),
    )


def folder_of(package: str) -> Path:
    found = [path for root in package_roots() if (path := root / package.replace(".", "/")).is_dir()]
    if len(found) != 1:
        raise LookupError(f"{package} is in {len(found)} of the package roots of pyproject.toml; allowed: one")
    return found[0]


def table() -> str:
    rows = []
    for each in distributions().values():
        packages = ", ".join(f"`{name}`" for name in each.packages)
        shipped = [*(f"{folder}/" for folder in each.data.values()), *sum(each.files.values(), ())]
        if shipped:
            packages += "; as files " + ", ".join(f"`{name}`" for name in shipped)
        rows.append((f"`{each.name}`", each.summary, packages, _needs(each)))
    return markdown_table.table(("wheel", "what it is", "packages", "needs"), rows)


def _distribution(name: str, entry: Mapping[str, Any]) -> Distribution:
    return Distribution(
        name=name,
        version=settings()["project"]["version"],
        summary=entry["summary"],
        packages=tuple(entry["packages"]),
        python=entry.get("python", Distribution.python),
        requires=tuple(entry.get("requires", ())),
        extras={extra: tuple(needs) for extra, needs in entry.get("extras", {}).items()},
        scripts=entry.get("scripts", {}),
        data=entry.get("data", {}),
        files={place: tuple(names) for place, names in entry.get("files", {}).items()},
        left_out=tuple(entry.get("left-out", ())),
    )


def _needs(distribution: Distribution) -> str:
    def listed() -> Iterator[str]:
        yield f"Python {distribution.python}"
        yield from (f"`{each}`" for each in distribution.requires)
        for extra, needs in distribution.extras.items():
            yield f"for `[{extra}]` {', '.join(f'`{each}`' for each in needs)}"

    return ", ".join(listed())
