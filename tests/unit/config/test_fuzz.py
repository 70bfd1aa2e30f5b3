"""Whatever a file holds, it is either an environment or refused in words; nothing else ever comes out."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.config import Environment, EnvironmentFileError, load

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=12), st.dates(), st.binary(max_size=4)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(SCALARS, inner, max_size=3)),
    max_leaves=6,
)


def places(node: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [at, *(place for key, child in children for place in places(child, (*at, key)))]


def replaced(node: Any, at: tuple[Any, ...], value: Any) -> Any:
    if not at:
        return value
    if isinstance(node, dict):
        return {key: replaced(child, at[1:], value) if key == at[0] else child for key, child in node.items()}
    return [replaced(child, at[1:], value) if index == at[0] else child for index, child in enumerate(node)]


@pytest.fixture(scope="module")
def valid() -> Any:
    return yaml.safe_load((Path(__file__).parents[3] / "environments" / "local.yaml").read_text())


@settings(derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_value_in_any_place_is_accepted_or_refused_in_words(
    data: st.DataObject, valid: Any, tmp_path: Path
) -> None:
    place = data.draw(st.sampled_from(places(valid)))
    path = tmp_path / "some.yaml"
    path.write_text(yaml.dump(replaced(valid, place, data.draw(VALUES)), allow_unicode=True))

    check_accepted_or_refused(path)


@settings(derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=60))
def test_any_bytes_are_refused_in_words(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "some.yaml"
    path.write_bytes(content)

    check_accepted_or_refused(path)


def check_accepted_or_refused(path: Path) -> None:
    try:
        environment = load(path)
    except EnvironmentFileError as error:
        problems = error.problems
    else:
        assert isinstance(environment, Environment)
        return
    assert problems
    for problem in problems:
        assert str(problem).isprintable(), str(problem)
        assert problem.allowed
        assert problem.fix
