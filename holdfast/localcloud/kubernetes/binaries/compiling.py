"""Compile our programs in Debian's source package of Kubernetes, which has all dependencies."""

import os
import shutil
from pathlib import Path

from holdfast.localcloud.kubernetes.binaries.errors import BinariesError
from holdfast.localcloud.kubernetes.binaries.recipe import (
    GO_ROOT,
    STAMPED,
    TAGS,
    UNDESCRIBED,
    VENDORED,
    VERSION,
    go_files,
)
from holdfast.localcloud.kubernetes.binaries.running import run
from holdfast.localcloud.kubernetes.binaries.stepping import Note

_MOST_COMPILERS = 8
_SHORT_S, _LONG_S = 1800.0, 6 * 3600.0
_MARK = b"+k8s:openapi-gen="
_DEFINITIONS = "pkg/generated/openapi"


class Tree:
    """Sources in a build's work folder: ``tree`` has Go, ``source`` Debian's source package."""

    def __init__(self, work: Path) -> None:
        self._work = work
        self.path = work / "go" / "src" / "k8s.io" / "kubernetes"
        self.built = work / "built"
        self._go = work / "tree" / GO_ROOT

    def unpack(self, note: Note) -> None:
        """Unpack the source package, and replace vendored packages by Debian's newer ones."""
        archives = list((self._work / "source").glob("kubernetes_*.orig.tar.*"))
        if len(archives) != 1:
            raise BinariesError(f"{self._work / 'source'} has {len(archives)} archives of Kubernetes, expected 1")
        note("sources of Kubernetes")
        shutil.rmtree(self.path, ignore_errors=True)
        self.path.mkdir(parents=True)
        self._run("tar", "xf", str(archives[0]), "--strip-components=1", "--no-same-owner", deadline_s=_SHORT_S)
        for vendored, ours in VENDORED.items():
            shutil.rmtree(self.path / "vendor" / vendored)
            shutil.copytree(self._work / "tree" / ours, self.path / "vendor" / vendored)

    def describe(self, note: Note) -> None:
        """Generate the OpenAPI definitions, which the source package lacks."""
        generator = str(self._work / "openapi-gen")
        note("the generator")
        self._build("./vendor/k8s.io/kube-openapi/cmd/openapi-gen", to=generator)
        note("definitions")
        self._run(
            generator, "--logtostderr",
            "-i", ",".join(f"k8s.io/kubernetes/{folder}" for folder in described_folders(self.path)),
            "-p", f"k8s.io/kubernetes/{_DEFINITIONS}", "-O", "zz_generated.openapi",
            "-h", "vendor/k8s.io/code-generator/hack/boilerplate.go.txt", "-r", str(self._work / "openapi.violations"),
            deadline_s=_SHORT_S,
        )  # fmt: skip

    def compile(self, program: str, note: Note) -> None:
        """Compile a program to ``built/PROGRAM``, atomically."""
        folder = self.path / "cmd" / program
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for path in go_files(program):
            shutil.copyfile(path, folder / path.name)
        self.built.mkdir(exist_ok=True)
        new = self.built / f".{program}.new"
        self._build(f"./cmd/{program}", to=str(new), note=note)
        new.replace(self.built / program)

    def _build(self, package: str, *, to: str, note: Note = lambda _: None) -> None:
        tags = ["-tags", " ".join(TAGS)]
        count = len(self._run("go", "list", "-deps", *tags, package, deadline_s=_SHORT_S).splitlines())
        done = 0

        def on_line(_line: str) -> None:
            nonlocal done
            done += 1
            note(f"{min(done, count)} of at most {count} packages")

        compilers = str(min(os.cpu_count() or 1, _MOST_COMPILERS))
        self._run(
            "go", "build", "-v", "-p", compilers, *tags, "-ldflags", linker_flags(), "-o", to, package,
            deadline_s=_LONG_S, on_line=on_line,
        )  # fmt: skip

    def _run(self, *argv: str, deadline_s: float, on_line: Note = lambda _: None) -> str:
        return run(argv, env=self._environment(), cwd=self.path, deadline_s=deadline_s, on_line=on_line)

    def _environment(self) -> dict[str, str]:
        (self._work / "tmp").mkdir(exist_ok=True)
        return {
            "PATH": f"{self._go}/bin:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self._work),
            "TMPDIR": str(self._work / "tmp"),
            "GOROOT": str(self._go),
            "GOPATH": str(self._work / "go"),
            "GOCACHE": str(self._work / "cache"),
            "GO111MODULE": "off",
            "CGO_ENABLED": "0",
            "GOFLAGS": "-trimpath",
        }


def linker_flags() -> str:
    major, minor, _ = VERSION.split(".")
    stamps = {"gitVersion": f"v{VERSION}", "gitMajor": major, "gitMinor": minor}
    packages = [f"k8s.io/kubernetes/vendor/k8s.io/{package}" for package in STAMPED]
    return " ".join(["-s", "-w", *(f"-X {one}.{name}={value}" for one in packages for name, value in stamps.items())])


def described_folders(tree: Path) -> list[str]:
    places = {"": tree / "pkg", "vendor/": tree / "staging" / "src" / "k8s.io"}
    found = set()
    for prefix, place in places.items():
        top = tree / "staging" / "src" if prefix else tree
        for path in place.rglob("*.go"):
            folder = f"{prefix}{path.parent.relative_to(top)}"
            if not any(each in f"/{folder}" for each in UNDESCRIBED) and _MARK in path.read_bytes():
                found.add(folder)
    return sorted(found)
