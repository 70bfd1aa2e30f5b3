"""What other apps do with the constructs works from the wheel, in a folder that holds nothing else of this checkout."""

from pathlib import Path

import pytest
from wheel_of_checkout import DEADLINE_S, installed_wheel, run_with_wheel

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(2 * DEADLINE_S)]
OTHER_APPS = ("test_other_apps_usage", "test_other_apps_stacks", "test_other_apps_existing")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.mark.parametrize("name", OTHER_APPS)
def test_what_other_apps_do_works_from_the_wheel(name: str, installed: Path, repository: Path, tmp_path: Path) -> None:
    for file in (f"tests/unit/{name}.py", "tests/support/other_apps.py"):
        (tmp_path / Path(file).name).write_bytes((repository / file).read_bytes())
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    run = tmp_path / "run.py"
    run.write_text(
        "import sys\n"
        "sys.path.insert(0, '.')\n"
        "import holdfast_constructs, pytest\n"
        f"assert holdfast_constructs.__file__.startswith({str(installed)!r}), holdfast_constructs.__file__\n"
        f"sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', {name + '.py'!r}]))\n"
    )

    done = run_with_wheel(run, site=installed, out=tmp_path / "out", repository=repository)

    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert " passed" in done.stdout
