"""
Deployed environments of a home, and AWS clients for them.

``holdfast up`` records a session once the cluster is in service and makes it current; ``holdfast use`` changes the
current one. All other commands read it, and take everything else from AWS APIs.
"""

import functools
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from holdfast.cli.deployed.aws import AwsError, UnreachableError
from holdfast.cli.terminal import CommandError, sudo_command
from holdfast.localcloud import LocalCloud, from_environment
from holdfast.localcloud.home import Keys
from holdfast.localcloud.processes import holder_of


@dataclass(frozen=True, kw_only=True)
class Session:
    environment: str
    cloud: Literal["embedded", "aws"]
    region: str
    stack_name: str
    cluster_name: str
    port: int
    profile: str = ""
    """Of AWS's configuration files; empty: as botocore chooses."""

    def save(self, *, home: Path) -> None:
        for path in (_path_of(home, self.environment), _path(home)):
            path.parent.mkdir(parents=True, exist_ok=True)
            fresh = path.with_suffix(".new")
            fresh.write_text(json.dumps(asdict(self), indent=1))
            fresh.replace(path)


@dataclass(frozen=True, kw_only=True)
class Context:
    """Session with its local cloud and AWS clients, which are created on first use (tens of milliseconds)."""

    session: Session
    local: LocalCloud

    def client(self, service: str) -> Any:
        return _client(service, self.session, self.local)

    def ask(self, service: str, operation: str, **parameters: Any) -> dict[str, Any]:
        """
        Return the answer of one operation, such as DescribeCluster of sagemaker.

        Raises:
            AwsError: the service refused.
            UnreachableError: the embedded AWS does not answer.
        """
        from botocore import exceptions, xform_name

        try:
            answer: dict[str, Any] = getattr(self.client(service), xform_name(operation))(**parameters)
        except exceptions.ClientError as error:
            raise AwsError(code=error.response["Error"]["Code"], message=error.response["Error"]["Message"]) from None
        except (exceptions.HTTPClientError, exceptions.ConnectionError) as error:
            if self.session.cloud == "aws":
                raise
            raise UnreachableError(f"the embedded AWS at {self.local.endpoint} does not answer: {error}") from None
        return answer

    @property
    def sts_endpoint(self) -> str:
        if self.session.cloud == "embedded":
            return self.local.endpoint
        return str(self.client("sts").meta.endpoint_url)

    def keys(self) -> Keys:
        """Return the caller's keys. Raises: NoCredentialsError: no AWS login."""
        if self.session.cloud == "embedded":
            return self.local.keys()
        import botocore.session
        from botocore.exceptions import NoCredentialsError

        found = botocore.session.Session(profile=self.session.profile or None).get_credentials()
        if found is None:
            raise NoCredentialsError
        frozen = found.get_frozen_credentials()
        return Keys(
            access_key_id=frozen.access_key, secret_access_key=frozen.secret_key, session_token=frozen.token or ""
        )

    @functools.cached_property
    def orchestrator(self) -> Literal["slurm", "eks"]:
        """Orchestrator by DescribeCluster; Slurm if the cluster does not exist."""
        try:
            described = self.ask("sagemaker", "DescribeCluster", ClusterName=self.session.cluster_name)
        except AwsError as error:
            if not error.code.startswith("ResourceNotFound"):
                raise
            return "slurm"
        return "eks" if "Eks" in described.get("Orchestrator", {}) else "slurm"

    def template(self) -> dict[str, Any]:
        """
        The template of the stack.

        Raises:
            AwsError: there is none, or it may not be read.
            ValueError: it is not JSON.
        """
        answer = self.ask("cloudformation", "GetTemplate", StackName=self.session.stack_name)
        body = answer["TemplateBody"]
        return dict(json.loads(body) if isinstance(body, str) else body)

    def describe_stack(self) -> dict[str, Any]:
        """StackStatus and Outputs of the environment's stack. Raises: AwsError when there is none."""
        answer = self.ask("cloudformation", "DescribeStacks", StackName=self.session.stack_name)
        stack: dict[str, Any] = answer["Stacks"][0]
        return stack


@functools.cache
def _client(service: str, session: Session, local: LocalCloud) -> Any:
    import botocore.session
    from botocore.config import Config

    if session.cloud == "aws":
        chosen = botocore.session.Session(profile=session.profile or None)
        return chosen.create_client(service, region_name=session.region)
    return botocore.session.get_session().create_client(
        service,
        region_name=session.region,
        **local.client_arguments(),
        config=Config(
            s3={"addressing_style": "path"},
            connect_timeout=3,
            read_timeout=30,
            retries={"max_attempts": 1},
            parameter_validation=False,
            proxies={},
        ),
    )


def load() -> Context:
    """Return the current session. Raises: CommandError: none, or its local cloud does not run."""
    local = from_environment()
    session = recorded(local.home)
    if session is None:
        if holder := holder_of(local.home):
            raise CommandError(f"nothing is up in {local.home} yet: {holder} holds it")
        raise CommandError(f"nothing is up in {local.home}; start with: holdfast up local")
    return context_of(session, local)


def context_of(session: Session, local: LocalCloud) -> Context:
    """Return a session with its clients. Raises: CommandError: its local cloud does not run."""
    if session.cloud == "embedded":
        local = LocalCloud(home=local.home, port=session.port)
        _refuse_dead(local, environment=session.environment)
        os.environ.setdefault("AWS_EC2_METADATA_DISABLED", "true")
    return Context(session=session, local=local)


def _refuse_dead(local: LocalCloud, *, environment: str) -> None:
    processes = {one.name: one for one in local.processes()}
    gone = ", ".join(name for name in ("aws", "hyperpod") if processes[name].state == "gone")
    if gone:
        kept = processes["keeper"].state == "running"
        how = "it is restarting: retry in some seconds, or" if kept else "restore it with"
        raise CommandError(f"the local cloud is not running (stopped: {gone}); {how}: holdfast up {environment}")
    if processes["aws"].state == "stopped":
        raise CommandError(f"{processes['aws'].problems[0]}, or: holdfast up {environment}")


def recorded(home: Path, *, environment: str | None = None) -> Session | None:
    """Return the session of an environment or the current one; None without one. Raises: CommandError: unreadable."""
    path = _path(home) if environment is None else _path_of(home, environment)
    try:
        return Session(**json.loads(path.read_text()))
    except FileNotFoundError:
        return None
    except (json.JSONDecodeError, TypeError):
        raise CommandError(f"{path} is not a session of this version; run: holdfast down") from None
    except PermissionError:
        raise CommandError(f"{home} cannot be read by this user; run: {sudo_command()}") from None


def environments(home: Path) -> list[str]:
    try:
        return sorted(path.stem for path in (home / "sessions").glob("*.json"))
    except PermissionError:
        return []


def _path(home: Path) -> Path:
    return home / "session.json"


def _path_of(home: Path, environment: str) -> Path:
    return home / "sessions" / f"{environment}.json"
