"""No text of others steers a terminal: names, messages and evidence go through the outputs of the verbs as they are."""

import io
import json
import logging
import sys
import unicodedata
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from accounting import sacct_line
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table
from rich.text import Text

from holdfast import cli
from holdfast.cli.deployed import AwsError, Context, Session
from holdfast.cli.terminal import UncutConsole
from holdfast.cli.views import EventLine
from holdfast.localcloud import LocalCloud
from holdfast.localcloud.home import MARKER
from holdfast.localcloud.supervision import LineFormatter
from holdfast_common import Event, kinds, plain, visible

HOSTILE = "x\x1b]0;owned\x07\x1b[2J\u202egpj.exe\u2066\x9b31m\x08\r\u200f\x7f\u2028y"
"""The title of the terminal, its whole screen, the direction of writing, C1's CSI, backspace, and a line separator."""
ALLOWED = {"\n", "\t"}
HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def steering(text: str) -> set[str]:
    return {one for one in text if one not in ALLOWED and unicodedata.category(one) in HIDDEN}


EVENTS = [
    Event(
        time_ns=10**18 + number, source=source, node=f"i-4{HOSTILE}", job=f"7{HOSTILE}", kind=kind,
        fault=f"gpu-lost{HOSTILE}", action="replace", evidence=f"{HOSTILE}\n{HOSTILE}",
        detail={"nodes": f"i-4{HOSTILE}", "step": 1, "incident": HOSTILE, "host": HOSTILE, HOSTILE: HOSTILE},
    )
    for number, (source, kind) in enumerate(
        (("job", kinds.JOB_STARTED), ("agent", kinds.VERDICT), ("job", HOSTILE), ("control-plane", kinds.NODE_LOST))
    )
]  # fmt: skip
STREAMS = {"job": "i-4/jobs", "agent": "i-4", "control-plane": "control-plane"}
NODE = {
    "InstanceGroupName": HOSTILE,
    "InstanceId": f"i-4{HOSTILE}",
    "InstanceType": "ml.m5.xlarge",
    "InstanceStatus": {"Status": "Running", "Message": HOSTILE},
    "PrivateDnsHostname": f"ip-10-1-0-4{HOSTILE}",
}
GROUP = {"InstanceGroupName": HOSTILE, "SlurmConfig": {"NodeType": "Controller"}, "InstanceType": "ml.m5.xlarge"}
ANSWERS: dict[str, Any] = {
    "DescribeCluster": {
        "ClusterArn": "arn:aws:sagemaker:us-west-2:123456789012:cluster/abc123def456",
        "ClusterName": "local",
        "ClusterStatus": "InService",
        "InstanceGroups": [GROUP],
        "FailureMessage": HOSTILE,
    },
    "ListClusterNodes": {"ClusterNodeSummaries": [NODE]},
    "ListTags": {"Tags": [{"Key": "holdfast:stand-in:x", "Value": HOSTILE}]},
    "FilterLogEvents": {
        "events": [
            *({"message": event.to_json(), "logStreamName": STREAMS[event.source]} for event in EVENTS),
            {"message": HOSTILE, "logStreamName": "i-4/jobs"},
        ]
    },
    "DescribeFileSystems": {"FileSystems": [{"Lifecycle": HOSTILE, "StorageCapacity": 1200}]},
    "DescribeDataRepositoryAssociations": {
        "Associations": [{"FileSystemPath": HOSTILE, "DataRepositoryPath": HOSTILE}]
    },
}
HOST = f"ip-10-1-0-4{HOSTILE}".replace("\n", "").replace("\r", "").replace("\u2028", "")
PROGRAMS = {
    "sinfo": f"N|{HOST}|idle\nJ|8|RUNNING|{HOST}|0:01|{HOST}|{HOST}\n",
    "sacct": sacct_line(NodeList=HOST, User=f"ubuntu{HOST}", JobName=HOST) + "\n",
    "id -u": "1000\n1000\n",
    "scontrol": f"JobId=7 JobState=COMPLETED BatchHost={HOST}\n   StdOut=/fsx/a.out\n",
    "cat": f"{HOSTILE}\n",
}


class FakeNode:
    spec = SimpleNamespace(instance_id="i-4")

    def run(self, argv: list[str], **_: Any) -> Any:
        words = " ".join(argv)
        said = next((text for program, text in PROGRAMS.items() if program in words), "")
        return SimpleNamespace(returncode=0, stdout=said, stderr=HOSTILE)


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A local cloud in which every name that others choose is hostile."""
    home = tmp_path / "home"
    Session(
        environment="local", cloud="embedded", region="us-west-2", stack_name="s", cluster_name="local", port=1
    ).save(home=home)
    (home / MARKER).touch()
    stack = {"StackStatus": "CREATE_COMPLETE", "Outputs": [{"OutputKey": "FileSystemId", "OutputValue": "fs-1"}]}
    replaced: dict[tuple[Any, str], Callable[..., Any]] = {
        (Context, "ask"): lambda self, service, operation, **_: ANSWERS[operation],
        (Context, "client"): lambda self, service: MagicMock(),
        (Context, "describe_stack"): lambda self: stack,
        (LocalCloud, "is_claimed"): lambda self: True,
        (LocalCloud, "client_environment"): lambda self, *, region: {"AWS_REGION": region},
        (LocalCloud, "health"): lambda self: {},
    }
    for (owner, name), stand_in in replaced.items():
        monkeypatch.setattr(owner, name, stand_in)
    monkeypatch.setattr("holdfast.cli.deployed.sessions._refuse_dead", lambda local, *, environment: None)
    monkeypatch.setattr("holdfast.cli.deployed.nodes.instance", lambda context, *, node: FakeNode())
    monkeypatch.setenv("HOLDFAST_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Screen(io.StringIO):
    """A terminal, of which the styles are switched off."""

    def isatty(self) -> bool:
        return True


def shown(*words: str, monkeypatch: pytest.MonkeyPatch, terminal: bool) -> str:
    """What a verb writes to both of its outputs."""
    monkeypatch.setattr(sys, "argv", ["holdfast", *words])
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("NO_COLOR", "1")
    made = Screen if terminal else io.StringIO
    out, err = made(), made()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit):
        cli.main()
    return out.getvalue() + err.getvalue()


TEMPLATE = {
    "Resources": {
        f"Cluster{HOSTILE}": {
            "Type": "AWS::SageMaker::Cluster",
            "Properties": {"ClusterName": HOSTILE, "InstanceGroups": [{"InstanceGroupName": HOSTILE}]},
        }
    }
}


@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "pipe"])
@pytest.mark.parametrize(
    "words",
    [
        ("status",),
        ("jobs",),
        ("jobs", "7"),
        ("events",),
        ("events", "--json"),
        ("incidents",),
        ("incidents", "gpu"),
        ("incidents", "--html", "page.html"),
        ("incidents", "--json"),
        ("logs", "--node", f"i-4{HOSTILE}"),
        ("kill-node", HOSTILE),
        ("cancel", HOSTILE),
        ("plan", "--events", "events.jsonl", "--instances", "4", "--instance-type", "ml.p5.48xlarge", "--runs", "5"),
        ("incidents", "--events", "events.jsonl"),
        ("check", "template.json"),
        ("check", "template.json", "--json"),
        ("check", f"{HOSTILE}.yaml"),
        ("check", "environment.yaml"),
        ("diff", HOSTILE),
        ("submit", HOSTILE),
        ("env", "-e", HOSTILE),
    ],
    ids=lambda words: plain(" ".join(words))[:40],
)
def test_no_verb_writes_what_steers_a_terminal(
    words: tuple[str, ...], terminal: bool, cloud: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cloud / "template.json").write_text(json.dumps(TEMPLATE))
    (cloud / "environment.yaml").write_text(json.dumps({"name": HOSTILE, "region": HOSTILE, HOSTILE: {HOSTILE: 1}}))
    (cloud / "events.jsonl").write_text("".join(event.to_json() + "\n" for event in EVENTS) + HOSTILE + "\n")

    text = shown(*words, monkeypatch=monkeypatch, terminal=terminal)

    assert text
    assert steering(text) == set()
    page = cloud / "page.html"
    assert not page.exists() or steering(page.read_text()) == set()


def test_the_output_of_a_job_is_as_it_was_written_for_programs_and_fit_to_be_shown_on_a_terminal(
    cloud: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_a_terminal = shown("logs", "--job", "7", monkeypatch=monkeypatch, terminal=True)
    piped = shown("logs", "--job", "7", monkeypatch=monkeypatch, terminal=False)

    assert "owned" in on_a_terminal
    assert steering(on_a_terminal) == set()
    assert "\x1b]0;owned" in piped


def test_the_message_of_an_error_is_shown_as_text(cloud: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AwsError(code="ValidationError", message=HOSTILE)

    monkeypatch.setattr(Context, "ask", refuse)

    text = shown("status", monkeypatch=monkeypatch, terminal=True)

    assert "\\u001b]0;owned" in text
    assert steering(text) == set()


def test_an_event_is_one_line_whatever_it_holds() -> None:
    out = io.StringIO()
    forged = "all well\n2026-11-22 18:00:00.000  control-plane  i-1  node_lost"
    UncutConsole(file=out, markup=False).print(
        EventLine(Event(time_ns=1, source="job", kind="note", evidence=forged, node="a\nb", detail={"a\nb": "c\nd"})),
        soft_wrap=True,
    )

    assert out.getvalue().count("\n") == 1


@given(st.text(alphabet=st.characters(codec=None)))
def test_whatever_is_printed_can_be_seen_and_is_what_it_was_where_it_already_could(text: str) -> None:
    out = io.StringIO()
    console = UncutConsole(file=out, markup=False, emoji=False, highlight=False, width=400, color_system=None)
    table = Table()
    table.add_column(Text(text))
    table.add_row(text)
    console.print(text, Text(text), table, soft_wrap=True)

    assert steering(out.getvalue()) == set()
    assert steering(plain(text)) == set()
    assert "\n" not in plain(text)
    assert visible(plain(text)) == plain(text)
    if text.isprintable():
        assert plain(text) == text
    out.getvalue().encode()


def test_a_record_of_a_log_is_one_line_with_its_time_whatever_its_message_holds() -> None:
    message = f"{HOSTILE}\n2026-11-22 18:00:00,000 INFO holdfast: all well"
    record = logging.LogRecord("x", logging.INFO, "x.py", 1, "a job said: %s", (message,), None)

    first, *others = LineFormatter("%(asctime)s %(message)s").format(record).split("\n")

    assert steering(first) == set()
    assert all(line.startswith("    ") for line in others)


def test_the_agent_shows_the_evidence_of_others_as_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from holdfast_agent.commands import main

    detector = {"name": HOSTILE, "failed": False, "hung": 0, "support": HOSTILE, "looked_s_ago": 1.0, "reason": HOSTILE}
    incident = {"incident": HOSTILE, "fault": HOSTILE, "device": HOSTILE, "remedy": "none", "when": "now"}
    told = {
        "node": HOSTILE, "cluster": HOSTILE, "pid": 1, "since_s": 1.0, "mode": "act", "detectors": [detector],
        "incidents": [{**incident, "evidence": [HOSTILE]}], "remedy": {"phase": HOSTILE, "problem": HOSTILE},
        "events": {"problem": HOSTILE}, "state": {"problem": HOSTILE},
        "beside": [{"name": HOSTILE, "problem": HOSTILE}],
        "lost": [{"detector": HOSTILE, "part": HOSTILE, "why": HOSTILE}],
    }  # fmt: skip
    monkeypatch.setattr("holdfast_agent.commands.status.ask_status", lambda _: told)
    monkeypatch.setattr(sys, "argv", ["holdfast-agent", "status"])

    assert main() == 0

    out = capsys.readouterr().out
    assert out.count("owned") > 10
    assert steering(out) == set()
