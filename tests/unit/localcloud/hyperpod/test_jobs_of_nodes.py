"""The jobs of a node that is replaced or rebooted: asked of Slurm while it has them, and named in the event."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from holdfast.localcloud.hyperpod.instances import Procedure
from holdfast.localcloud.hyperpod.slurm import Slurm
from holdfast_common import kinds


@pytest.mark.parametrize(("returncode", "printed", "jobs"), [(0, "7\n9_2\n", "7,9_2"), (1, "", ""), (0, "\n", "")])
def test_the_jobs_of_a_node_are_those_that_slurm_has_on_it(returncode: int, printed: str, jobs: str) -> None:
    asked: list[list[str]] = []

    def run(argv: list[str], **_: Any) -> Any:
        asked.append(argv)
        return SimpleNamespace(returncode=returncode, stdout=printed)

    slurm = Slurm()
    node: Any = SimpleNamespace(read_file=lambda _: b"", alive=lambda: True, run=run)
    slurm.form(controller=node, conf="", before_start=None)

    assert slurm.jobs_on("ip-10-1-0-12") == jobs
    assert "--nodelist=ip-10-1-0-12" in asked[0]


class Controller:
    """Slurm, which has no job on a node that is DOWN."""

    def __init__(self) -> None:
        self.jobs = "7"

    def jobs_on(self, host_name: str) -> str:
        assert host_name == "ip-10-1-0-12"
        return self.jobs

    def down(self, _host_name: str, *, reason: str) -> None:
        self.jobs = ""


@pytest.mark.parametrize(("verb", "kind"), [("replace", kinds.NODE_REPLACING), ("reboot", kinds.NODE_REBOOTING)])
@pytest.mark.parametrize(("role", "detail"), [("Compute", {"jobs": "7"}), ("", {})])
def test_the_repair_of_a_node_names_the_jobs_that_it_had(verb: str, kind: str, role: str, detail: Any) -> None:
    memory = SimpleNamespace(failures={}, returning={}, attempts={}, settled=[])
    given = {name: MagicMock() for name in Procedure.__dataclass_fields__}
    given["cluster"].group.return_value.slurm_role = role
    given["instance"].host_name = "ip-10-1-0-12"
    given["slurms"].of.return_value = Controller()
    given["memory"].change.return_value = nullcontext(memory)
    procedure: Any = Procedure(**given)

    if verb == "replace":
        procedure.replace(cause="it is gone", lost=True)
    else:
        procedure.reboot(cause="it is silent", unreachable=True)

    named = {call.args[0]: call.kwargs["detail"] for call in given["events"].emit.call_args_list}
    assert {name: value for name, value in named[kind].items() if name == "jobs"} == detail


def test_a_replacement_that_was_requested_counts_as_an_attempt_as_that_of_a_lost_node_does() -> None:
    memory = SimpleNamespace(failures={}, returning={}, attempts={}, settled=[])
    given = {name: MagicMock() for name in Procedure.__dataclass_fields__}
    given["instance"].address = "10.1.0.12"
    given["memory"].change.return_value = nullcontext(memory)
    procedure: Any = Procedure(**given)

    procedure.replace(cause="its Slurm node has the reason Action:Replace", lost=False)

    assert memory.attempts == {"10.1.0.12": 1}, "a failed replacement is tried again only if it is known as one"
