"""No wait of launcher or rank is without a deadline: each call that can wait for ever is known, with what bounds it."""

import ast
from collections.abc import Iterator
from pathlib import Path

PARTS = ("control", "faults", "inprocess", "launcher", "membership", "patience", "snapshots", "store", "transfer")
WITHOUT_DEADLINE = {"wait", "join", "result", "acquire", "accept", "recv", "recvmsg", "communicate", "readline"}
BOUNDED = {
    "control/client.py: self._connection.recv": "the socket's own time limit; then it looks at the launcher",
    "inprocess/member/taking.py: stored.wait": "the checkpoints' own deadline_s",
    "inprocess/member/peers.py: work.wait": "the time limit of the group (progress), once gloo said that it has ended",
    "inprocess/reduction/reducer.py: work.wait": "the default of a caller without a launcher",
    "inprocess/update.py: member.join": "view and leave",
    "inprocess/member/member.py: self.join": "view and leave; a spare waits as long as its launcher is there",
    "inprocess/member/member.py: taken.result": "the copy has the deadline transfer, and ends when it is time to leave",
    "launcher/ranks/forker.py: line.recv": "the socket's time limit, frozen",
    "launcher/ranks/forker.py: process.wait": "called when its descriptor says that it has ended",
    "launcher/node/agent_link.py: reader.readline": "a task that nobody waits for; it ends with the launcher",
    "launcher/node/agent_link.py: self._changed.wait": "inside of wait_for",
    "launcher/node/places.py: self._prepared.wait": "prepare() has start, and ends the job",
    "launcher/node/peers.py: self._came.wait": "inside of wait_for",
    "launcher/links/connections.py: link.ended.wait": "inside of wait_for",
    "launcher/links/handshake.py: reader.readline": "inside of wait_for",
    "launcher/links/resolver.py: done.result": "a callback of what is done",
    "launcher/links/heartbeats.py: self._changed.wait": "inside of wait_for",
    "launcher/node/report.py: reader.readline": "inside of wait_for",
    "launcher/asking/sockets.py: line.recv": "the socket's time limit, of the whole answer",
    "launcher/allocation/expansion.py: child.communicate": "inside of wait_for",
    "launcher/allocation/expansion.py: child.wait": "a task that nobody waits for; the launcher ends it with itself",
    "launcher/ranks/slots.py: reader.readline": "a process that is silent or stopped is killed by the watch",
    "snapshots/keeper.py: self._door.accept": "a thread that serves",
    "transfer/server.py: self._listener.accept": "a thread that serves",
    "transfer/server.py: self._thread.join": "its listener was shut down before",
}


def test_every_wait_has_a_deadline_or_is_known_with_what_bounds_it(repository: Path) -> None:
    runtime = repository / "containers" / "training" / "holdfast_runtime"
    found = {wait for part in PARTS for path in (runtime / part).rglob("*.py") for wait in waits(path, runtime)}

    assert found - BOUNDED.keys() == set(), "give it a deadline of Deadlines, or say here what bounds it"
    assert BOUNDED.keys() - found == set(), "it is gone: take it out of the list"


def waits(path: Path, root: Path) -> Iterator[str]:
    """Calls that may wait, with nothing among their arguments that could be a deadline."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        called = ast.unparse(node.func)
        receives = node.func.attr in ("recv", "recvmsg", "readline")
        if node.func.attr in WITHOUT_DEADLINE and (receives or not (node.args or node.keywords)):
            yield f"{path.relative_to(root)}: {called}"
