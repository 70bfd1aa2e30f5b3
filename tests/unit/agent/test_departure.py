"""Launchers that leave a node because an operator requests it."""

from pathlib import Path

from simulated_nodes import job

from holdfast_agent.remedies import Departure, leave_request
from holdfast_common import kinds, node_socket


def departure(tmp_path: Path) -> tuple[Departure, Path]:
    request = leave_request(tmp_path / "status.sock")
    return Departure(request=request, host="ip-10-1-0-11"), request


def test_without_a_request_no_launcher_is_told_anything(tmp_path: Path) -> None:
    one, _ = departure(tmp_path)
    assert one.step((job(), job(spare=True, pid=300)), ()) == ([], [])
    assert one.status() == {"reason": "", "kept": {}}


def test_ranks_are_handed_over_once(tmp_path: Path) -> None:
    one, request = departure(tmp_path)
    request.write_text("holdfast upgrade\n")
    with_ranks = job()
    ((told, command),), _ = one.step((with_ranks,), ())
    assert (told, command.command, command.reason) == (with_ranks, "hand-over", "holdfast upgrade")
    assert one.step((with_ranks,), ())[0] == []
    answer = node_socket.Answer(id=command.id, command="hand-over", outcome="done", ranks=(0,), step=7)
    _, (event,) = one.step((), ((with_ranks, answer),))
    assert (event.kind, event.detail["steps_lost"]) == (kinds.HANDED_OVER, 0)


def test_a_launcher_without_a_spare_elsewhere_is_asked_once_there_is_one(tmp_path: Path) -> None:
    one, request = departure(tmp_path)
    request.write_text("holdfast upgrade")
    assert one.step((job(spares=0),), ())[0] == []
    assert one.status()["kept"] == {"12": "no spare has capacity for its ranks"}
    assert [command.command for _, command in one.step((job(spares=1),), ())[0]] == ["hand-over"]
    assert one.status()["kept"] == {}


def test_a_spare_of_this_node_exits(tmp_path: Path) -> None:
    one, request = departure(tmp_path)
    request.write_text("holdfast upgrade")
    assert [command.command for _, command in one.step((job(ranks=0, spare=True),), ())[0]] == ["abandon"]


def test_a_request_that_is_taken_back_is_forgotten(tmp_path: Path) -> None:
    one, request = departure(tmp_path)
    request.write_text("first")
    one.step((job(),), ())
    request.unlink()
    one.step((job(),), ())
    request.write_text("second")
    assert [command.reason for _, command in one.step((job(),), ())[0]] == ["second"]
