"""Facts of HoldfastJobs for an upgrade, as their open definition lets them be written."""

from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.cli.deployed import operated_sizes
from holdfast.cli.kubernetes import JobName


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ({"size": 3, "spares": 1}, (1, 0)),
        ({"min": 2, "max": 5}, (0, 2)),
        ({"size": 3, "max": 5, "spares": 2}, (2, 3)),
        ({"sizes": [4, 2], "spares": 1}, (1, 2)),
        ({"spares": "two", "sizes": ["a", 2]}, (0, 0)),
        ("3", (0, 0)),
        (None, (0, 0)),
    ],
)
def test_a_job_has_the_sizes_that_the_operator_gives_it_and_none_where_they_are_mistakes(
    nodes: Any, expected: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = {"metadata": {"name": "night", "namespace": "team"}, "spec": {} if nodes is None else {"nodes": nodes}}
    child = {**job, "metadata": {**job["metadata"], "ownerReferences": [{"name": "asked", "controller": True}]}}
    client = SimpleNamespace(get=lambda _path: {"kind": "HoldfastJobList", "items": [job, child]})
    monkeypatch.setattr("holdfast.cli.deployed.kubernetes.jobs.sign_in", lambda _: SimpleNamespace(client=client))
    context: Any = None

    found = operated_sizes(context)

    assert found == {JobName(name=name, namespace="team"): expected for name in ("night", "asked")}
