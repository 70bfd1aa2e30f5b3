"""A release is refused where versions differ, and its signing step reports that it is skipped."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from distributions import distributions, settings
from release import ReleaseError, check_version, oldest, sign

VERSION = settings()["project"]["version"]
CHANGELOG = f"# Changelog\n\n## {VERSION} (2026-01-31)\n"


def test_the_changelog_has_the_date_of_this_version(repository: Path) -> None:
    check_version(tag=f"v{VERSION}", changelog=(repository / "CHANGELOG.md").read_text())


@pytest.mark.parametrize(
    ("tag", "changelog", "reported"),
    [
        ("v9.9.9", CHANGELOG, f"got tag v9.9.9; allowed: v{VERSION}"),
        (VERSION, CHANGELOG, f"got tag {VERSION}; allowed: v{VERSION}"),
        (None, f"## {VERSION} (not released yet)\n", f"got no date of {VERSION} in CHANGELOG.md"),
        (None, "## 9.9.9 (2026-01-31)\n", f"got no date of {VERSION}"),
    ],
)
def test_another_tag_and_a_changelog_without_this_version_are_refused(
    tag: str | None, changelog: str, reported: str
) -> None:
    with pytest.raises(ReleaseError, match=reported.replace("(", r"\(")):
        check_version(tag=tag, changelog=changelog)


def test_oldest_packages_are_the_highest_lower_bounds_of_all_wheels() -> None:
    pins = oldest(distributions().values())

    assert "pyyaml==6.0.3" in pins
    assert "pydantic==2.14" in pins
    assert "moto==5.2.5" in pins
    assert [pin for pin in pins if pin.startswith("holdfast")] == []


def test_without_a_key_the_signing_step_reports_that_it_is_skipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "SHA256SUMS").touch()
    sign(tmp_path / "SHA256SUMS", key="")

    assert capsys.readouterr().out.startswith("signature: skipped: SIGNING_KEY is not set")
    assert not (tmp_path / "SHA256SUMS.asc").exists()


def test_wheels_are_not_built_by_an_older_setuptools_and_the_message_has_the_command(
    tmp_path: Path, repository: Path
) -> None:
    older = tmp_path / "setuptools-66.1.1.dist-info"
    older.mkdir()
    (older / "METADATA").write_text("Metadata-Version: 2.1\nName: setuptools\nVersion: 66.1.1\n")

    done = subprocess.run(
        [sys.executable, repository / "scripts/build_wheels.py", tmp_path / "wheels"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True,
    )  # fmt: skip

    assert done.returncode == 1
    assert "setuptools==66.1.1 is incompatible with setuptools>=77.0.3" in done.stderr
    assert f"{sys.executable} -m pip install 'setuptools>=77.0.3'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(shutil.which("gpg") is None, reason="needs gpg")
def test_with_a_key_the_signature_verifies(tmp_path: Path) -> None:
    home = tmp_path / "gpg"
    home.mkdir(mode=0o700)
    gpg = ["gpg", "--homedir", str(home), "--batch", "--quiet", "--passphrase", ""]
    try:
        subprocess.run([*gpg, "--quick-generate-key", "release@example.com", "ed25519", "sign"], check=True)
        exported = subprocess.run([*gpg, "--armor", "--export-secret-keys"], check=True, capture_output=True, text=True)
        sums = tmp_path / "SHA256SUMS"
        sums.write_text("0  wheel\n")
        sign(sums, key=exported.stdout)

        subprocess.run([*gpg, "--verify", f"{sums}.asc", str(sums)], check=True)
    finally:
        subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=False)
