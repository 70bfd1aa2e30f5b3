"""``holdfast plan`` as it is typed: tables, JSON, the page, events, and what it refuses."""

import json
import sys
from pathlib import Path

import pytest
from event_logs import log_of

from holdfast.cli import main


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code and both outputs of the command."""
    code: object = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["holdfast", "plan", *arguments])
        try:
            main()
        except SystemExit as ended:
            code = ended.code or 0
    said = capsys.readouterr()
    assert isinstance(code, int)
    return code, said.out, said.err


def test_an_environment_is_planned_from_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "slurm-p5", "--runs", "50")

    assert code == 0
    for word in ("first order", "renewal", "simulated", "checkpointless", "advice", "no price"):
        assert word in out


def test_json_holds_the_plan_its_assumptions_and_no_price_that_nobody_gave(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "slurm-p5", "--runs", "50", "--json")

    told = json.loads(out)
    assert code == 0
    assert told.keys() == {"plan", "assumptions", "standing", "actual"}
    assert told["actual"] is None
    assert all(outlook["cost_usd"] is None for outlook in told["plan"]["outlooks"])


def test_the_page_needs_nothing_but_itself(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = tmp_path / "plan.html"

    code, _, _ = run(capsys, "slurm-p5", "--runs", "50", "--html", str(page))

    text = page.read_text()
    assert code == 0
    assert 'data-plot="size"' in text
    assert "viewport" in text
    assert "@media print" in text
    assert "default-src 'none'" in text
    for outside in (" src=", "href=", "@import", "url("):
        assert outside not in text


def test_events_calibrate_the_plan_and_stand_beside_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    log.write_text("".join(event.to_json() + "\n" for event in log_of(rate=0.002, instances=16, hours=100.0, seed=1)))

    code, out, _ = run(capsys, "slurm-p5", "--runs", "50", "--json", "--events", str(log))

    told = json.loads(out)["actual"]
    assert code == 0
    assert {"goodput", "failures per instance-hour", "replace, mean, s"} <= {row["what"] for row in told["comparisons"]}
    for book in told["ledgers"]:
        assert sum(book["accounts_ns"].values()) == book["wall_ns"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--instances", "0"], "0"),
        (["--failure-rate", "-1"], "allowed: 0 to 100 %"),
        (["--spares", "-1"], "-1"),
        (["--events", "nowhere.jsonl"], "cannot be read"),
        (["--price", "cheap"], "cheap"),
        (["--target", "150"], "the goodput target is 150 %; allowed: more than 0 % and less than 100 %"),
        (["--runs", "0"], "--runs"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_what_cannot_be_is_refused_with_one_message(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    code, out, err = run(capsys, "slurm-p5", *arguments)

    assert code == 2
    assert out == ""
    assert message in err
    assert "Traceback" not in err


def test_a_layout_is_planned_alone_with_its_formulas(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--model", "70b", "--layout", "hsdp=64x32")
    _, plain, _ = run(capsys, "--model", "70b", "--layout", "hsdp=64x32", "--json")

    found = json.loads(plain)
    assert code == 0
    assert "2,048 ranks on 256 ml.p5.48xlarge" in " ".join(out.split())
    assert found["figures"]["state_gb"]["value"] == pytest.approx(13.2375)
    assert [each["way"] for each in found["recoveries"]] == ["TCP", "EFA"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--layout", "fsdp=8"], "got --layout alone; allowed: --model with --layout; give both"),
        (["slurm-p5", "--model", "8b", "--layout", "fsdp=8"], "got 16 instances for --layout fsdp=8; allowed: 1"),
        (["--model", "8b", "--layout", "fsdp=8", "--actual"], "allowed: --json"),
        (["--model", "8b", "--layout", "fsdp=8", "--instance-type", "ml.p5"], "there is no instance type 'ml.p5'"),
    ],
)
def test_a_layout_that_cannot_be_planned_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    code, out, err = run(capsys, *arguments)

    assert (code, out) == (2, "")
    assert said in err


def test_training_that_never_ends_is_said_to_never_end(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "slurm-p5", "--failure-rate", "90", "--runs", "20")

    assert code == 0
    assert "never" in out + err
