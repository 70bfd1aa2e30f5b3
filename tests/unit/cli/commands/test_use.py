"""Which environment the commands use where several are up: the current one, the shell's, the option's."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from holdfast import cli
from holdfast.cli import deploying
from holdfast.cli.deployed import AwsError, Context, Session, locate, recorded
from holdfast.cli.terminal import CommandError
from holdfast.localcloud import LocalCloud
from holdfast.localcloud.home import release

FILE = """name: {name}
account: "123456789012"
region: us-west-2
cloud: embedded
network: {{cidr: 10.0.0.0/16, availability_zone: us-west-2a}}
cluster:
  instance_groups:
    - {{name: head, instance_type: ml.m5.2xlarge, instance_count: 1, slurm: {{node_type: Controller}}}}
    - {{name: workers, instance_type: ml.g5.8xlarge, instance_count: 1, slurm: {{node_type: Compute, partition: dev}}}}
slurm: {{}}
storage: {{lustre: {{capacity_gib: 1200, throughput_mbps_per_tib: 250}}}}
"""


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A home with the environments blue and green, of which green is current; stacks are those of ``stacks``."""
    made = tmp_path / "home"
    monkeypatch.setenv("HOLDFAST_HOME", str(made))
    monkeypatch.delenv("HOLDFAST_ENVIRONMENT", raising=False)
    LocalCloud(home=made).claim()
    for name in ("blue", "green"):
        session(name).save(home=made)
    stacks = {"holdfast-blue", "holdfast-green", "holdfast-half"}
    monkeypatch.setattr(Context, "describe_stack", lambda self: described(self, stacks))
    monkeypatch.setattr("holdfast.cli.deployed.sessions._refuse_dead", lambda *_, **__: None)
    return made


def described(context: Context, stacks: set[str]) -> dict[str, Any]:
    name = context.session.stack_name
    if name not in stacks:
        raise AwsError(code="ValidationError", message=f"Stack with id {name} does not exist")
    return {"StackStatus": "CREATE_COMPLETE", "Outputs": []}


def session(name: str) -> Session:
    return Session(
        environment=name, cloud="embedded", region="us-west-2", stack_name=f"holdfast-{name}", cluster_name=name, port=1
    )


def current(home: Path) -> str:
    found = recorded(home)
    assert found is not None
    return found.environment


def test_the_last_one_that_came_into_service_is_current_and_use_names_another(home: Path) -> None:
    assert locate().session.environment == "green"
    done = CliRunner().invoke(cli.app, ["use", "blue"])
    assert done.stdout == "current: blue (cluster blue in us-west-2, stack CREATE_COMPLETE)\n", done.exception
    assert locate().session == session("blue")


def test_a_shells_variable_comes_before_the_current_one_and_the_option_before_both(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_ENVIRONMENT", "blue")
    assert locate().session.environment == "blue"
    assert locate(environment="green").session.environment == "green"
    assert current(home) == "green"


def test_use_in_a_shell_that_has_the_variable_says_that_it_comes_first(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_ENVIRONMENT", "green")
    done = CliRunner().invoke(cli.app, ["use", "blue"])
    assert "this shell has HOLDFAST_ENVIRONMENT=green, which takes precedence" in " ".join(done.stdout.split())


def test_use_of_an_environment_that_is_gone_is_refused_and_changes_nothing(home: Path) -> None:
    session("red").save(home=home)
    session("green").save(home=home)
    done = CliRunner().invoke(cli.app, ["use", "red"])
    assert str(done.exception) == (
        "red is gone: stack holdfast-red does not exist in us-west-2; other deployed ones: blue, green; "
        "deploy it with: holdfast up red"
    )
    assert current(home) == "green"


def test_a_command_for_a_cluster_that_is_gone_says_so(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(self: Context, service: str, operation: str, **_: object) -> dict[str, Any]:
        raise AwsError(code="ResourceNotFound", message="Cluster 'green' not found.")

    monkeypatch.setattr(Context, "ask", ask)
    done = CliRunner().invoke(cli.app, ["jobs"])
    assert str(done.exception) == (
        "there is no cluster green in us-west-2; environment green is gone: holdfast up green, "
        "or another one: holdfast use ENV"
    )


def test_a_variable_that_names_nothing_is_named_in_the_refusal(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_ENVIRONMENT", "nowhere")
    with pytest.raises(CommandError, match="got HOLDFAST_ENVIRONMENT=nowhere: there is no environment 'nowhere'"):
        locate()


def test_a_deployment_that_failed_is_seen_by_its_file_and_one_that_never_began_is_refused(
    home: Path, tmp_path: Path
) -> None:
    for name in ("half", "never"):
        (tmp_path / f"{name}.yaml").write_text(FILE.format(name=name))
    assert locate(environment=str(tmp_path / "half.yaml")).session.stack_name == "holdfast-half"
    with pytest.raises(CommandError, match=r"green is up in .*, not never; start it with: holdfast up"):
        locate(environment=str(tmp_path / "never.yaml"))
    assert current(home) == "green"


def test_a_deployment_that_fails_leaves_the_current_environment_and_says_so(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "red.yaml").write_text(FILE.format(name="red"))

    def refuse(*_: object, **__: object) -> None:
        raise CommandError("the stack was rolled back", exit_code=1)

    monkeypatch.setattr("holdfast.cli.commands.deployment.up.deploy", refuse)
    monkeypatch.setattr("holdfast.cli.commands.deployment.up.check_system", lambda: None)
    done = CliRunner().invoke(cli.app, ["up", str(tmp_path / "red.yaml")])
    assert str(done.exception) == "the stack was rolled back\ncurrent: green, as before"
    assert current(home) == "green"


def test_a_session_is_recorded_after_the_nodes_run_and_not_before(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from holdfast.config import load

    (tmp_path / "red.yaml").write_text(FILE.format(name="red"))
    seen: list[str] = []

    class Cdk:
        def __init__(self, **_: object) -> None: ...

        def start_synth(self) -> None: ...

        def start_deploy(self, **_: object) -> None: ...

        def end(self, _child: object) -> None: ...

        def wait(self, _child: object, *, what: str, progress: object) -> None:
            seen.append(f"{what}: {current(home)}")

    class Watch:
        def __init__(self, **_: object) -> None: ...

        look = lambda *_: None  # noqa: E731
        not_here = lambda *_: []  # noqa: E731

        def wait_for_nodes(self, _progress: object) -> list[str]:
            seen.append(f"nodes: {current(home)}")
            return []

    module = "holdfast.cli.deploying.deployment"
    for name, value in {"Cdk": Cdk, "_DeploymentWatch": Watch, "check_machine": lambda **_: ""}.items():
        monkeypatch.setattr(f"{module}.{name}", value)
    for name in ("start_local_cloud", "settle", "_bootstrap", "refuse_replacements"):
        monkeypatch.setattr(f"{module}.{name}", lambda *_, **__: None)
    monkeypatch.setattr(Context, "orchestrator", "slurm")
    definition = load(tmp_path / "red.yaml")
    context = deploying.deploy(definition, path=tmp_path / "red.yaml", local=LocalCloud(home=home))
    assert seen == ["cdk synth: green", "cdk deploy: green", "nodes: green"]
    assert current(home) == context.session.environment == "red"


def test_sessions_are_removed_with_the_home(home: Path) -> None:
    assert release(home) == []
