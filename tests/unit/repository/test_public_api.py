"""The names that other programs use change only in sight: docs/public-api.txt has them, with how each is called."""

import subprocess
import sys

from distributions import distributions
from public_api import FILE, PACKAGES, text


def test_no_public_name_goes_or_is_called_in_another_way_unseen() -> None:
    said, now = set(FILE.read_text().splitlines()), set(text().splitlines())

    assert sorted(said - now) == [], "breaks other programs: add a line to CHANGELOG.md; run: make schema"
    assert sorted(now - said) == [], "new: run make schema"


def test_every_public_package_is_in_a_wheel() -> None:
    shipped = [package for each in distributions().values() for package in each.packages]

    assert [name for name in PACKAGES if not any(f"{name}.".startswith(f"{package}.") for package in shipped)] == []


def test_each_name_of_the_shared_package_can_be_read_without_an_import_of_its_module() -> None:
    program = "import holdfast_common as c; print([n for n in c.__all__ if not hasattr(c, n)])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout.strip() == "[]"
