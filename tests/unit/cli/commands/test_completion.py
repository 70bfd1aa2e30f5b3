"""A shell completes environments, nodes, jobs, faults and instance types, and never sees an error."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from holdfast import cli

NODES = [
    SimpleNamespace(spec=SimpleNamespace(hostname="ip-10-1-0-5", instance_id="i-0abc")),
    SimpleNamespace(spec=SimpleNamespace(hostname="ip-10-1-0-6", instance_id="i-0def")),
]
STATUS = SimpleNamespace(
    jobs=[SimpleNamespace(job_id="12", name="train")],
    ended=[SimpleNamespace(job_id="7_3", name="sweep")],
)


def completed(*words: str) -> list[str]:
    """Completions of the last word, as bash asks for them."""
    env = {
        "_HOLDFAST_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(["holdfast", *words]),
        "COMP_CWORD": str(len(words)),
    }
    done = CliRunner().invoke(cli.app, [], prog_name="holdfast", env=env)
    assert done.exit_code == 0, done.output
    return done.output.split()


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A cluster that answers; its cloud can be changed, and the environment that was named is kept."""
    made = SimpleNamespace(cloud="embedded", named=None)

    def locate(*, environment: str | None) -> Any:
        made.named = environment
        return SimpleNamespace(session=SimpleNamespace(cloud=made.cloud))

    monkeypatch.setattr("holdfast.cli.deployed.targets.locate", locate)
    monkeypatch.setattr("holdfast.cli.deployed.targets.read_status", lambda _context: STATUS)
    monkeypatch.setattr("holdfast.localcloud.nodes.Fleet.nodes", lambda _fleet: NODES)
    return made


@pytest.mark.parametrize("verb", [["up"], ["check"], ["diff"], ["use"], ["plan"], ["status", "--environment"]])
def test_an_environment_is_completed_from_the_repository_and_the_examples(
    verb: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "environments").mkdir()
    (tmp_path / "cdk.json").touch()
    (tmp_path / "environments/loneliest.yaml").touch()
    monkeypatch.chdir(tmp_path)

    assert completed(*verb, "lo") == ["local", "local-eks", "loneliest"]


@pytest.mark.parametrize("verb", [["kill-node"], ["ssh"], ["logs"], ["inject"], ["events", "--node"]])
def test_a_node_is_completed_by_each_of_its_names(verb: list[str], cluster: Any) -> None:
    assert completed(*verb, "i") == ["ip-10-1-0-5", "i-0abc", "ip-10-1-0-6", "i-0def"]
    assert completed(*verb, "i-0a") == ["i-0abc"]


@pytest.mark.parametrize("verb", [["cancel"], ["jobs"], ["scale"], ["logs", "--job"], ["events", "--job"]])
def test_a_job_is_completed_by_its_id(verb: list[str], cluster: Any) -> None:
    assert completed(*verb, "1") == ["12"]
    assert completed(*verb, "7") == ["7_3"]


def test_the_environment_that_is_named_is_asked(cluster: Any) -> None:
    completed("scale", "--environment", "lab", "1")

    assert cluster.named == "lab"


def test_faults_and_instance_types_are_completed() -> None:
    assert "xid-79" in completed("inject", "i-0abc", "xid-7")
    assert "ml.p5.48xlarge" in completed("plan", "--instance-type", "ml.p5.")


def test_no_account_is_asked_for_jobs(cluster: Any) -> None:
    cluster.cloud = "aws"

    assert completed("cancel", "1") == []


@pytest.mark.parametrize("verb", ["ssh", "cancel"])
def test_without_a_local_cluster_nothing_is_completed(
    verb: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "none"))

    assert completed(verb, "1") == []
