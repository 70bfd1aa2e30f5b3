"""What other apps do with the constructs works from the wheel, in an environment that has nothing of this checkout."""

from pathlib import Path

import pytest
from clean_environment import DEADLINE_S, CleanEnvironment

from build_wheels import build

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(2 * DEADLINE_S)]
OTHER_APPS = ("test_other_apps_usage", "test_other_apps_stacks", "test_other_apps_existing")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> CleanEnvironment:
    folder = tmp_path_factory.mktemp("constructs")
    build(folder / "wheels")
    return CleanEnvironment(
        folder / "venv", distribution="holdfast-constructs", wheels=folder / "wheels", also=["pytest"]
    )


@pytest.mark.parametrize("name", OTHER_APPS)
def test_what_other_apps_do_works_from_the_wheel(
    name: str, environment: CleanEnvironment, repository: Path, tmp_path: Path
) -> None:
    for file in (f"tests/unit/{name}.py", "tests/support/other_apps.py"):
        (tmp_path / Path(file).name).write_bytes((repository / file).read_bytes())
    (tmp_path / "pytest.ini").write_text("[pytest]\n")

    done = environment.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", f"{name}.py", cwd=tmp_path)

    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert " passed" in done.stdout
