import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.cli.deployed import AwsError, Context, Session, eks_cluster, write_kubeconfig
from holdfast.cli.deploying.administrators import make_missing_roles
from holdfast.cli.deploying.app import app_folder
from holdfast.cli.deploying.cdk import BOOTSTRAP_STACK, Cdk, stack_exists, stack_status
from holdfast.cli.deploying.node import require_cdk_cli
from holdfast.cli.deploying.preflight import capacity_of, check_machine
from holdfast.cli.deploying.remarks import not_here
from holdfast.cli.deploying.stack_states import STUCK, after_failure, is_under_way, stuck
from holdfast.cli.deploying.stages import Stage
from holdfast.cli.terminal import CommandError, Step, console, step
from holdfast.localcloud import LocalCloud
from holdfast.localcloud.docker_stand_in import SCRIPT

if TYPE_CHECKING:
    from holdfast.config import Environment


NODES_TIMEOUT_S = 3600.0
"""Longer than the attempts that HyperPod makes take, each with a script that hangs."""


NODES_POLL_S = 0.25


SETTLES_WITHIN_S = 3600.0
SETTLES_POLL_S = 0.5


GIVEN_UP_AFTER_S = 5.0
"""A failed instance that HyperPod tries again is gone sooner."""


def refuse_replacements(definition: "Environment", context: Context) -> None:
    """Refuse to replace data or nodes unless the file allows it (guarantee G9)."""
    from holdfast.importing import deployed_environment
    from holdfast.updates import guard

    client = context.local.client_arguments() if definition.cloud == "embedded" else None
    deployed = deployed_environment(stack_name=definition.stack_name, region=definition.region, client=client)
    if deployed.stack_status == STUCK:
        raise CommandError(f"stack {definition.stack_name} is in {STUCK}: {stuck(definition.stack_name)}")
    problems = guard(definition, deployed.environment)
    errors = [str(problem) for problem in problems if problem.severity == "error"]
    if errors:
        raise CommandError("\n".join(errors))


@contextlib.contextmanager
def taken_down_on(ending: type[BaseException], local: LocalCloud, *, begun_here: bool) -> Iterator[None]:
    """Take down a local cloud that this command started if it ends with this error."""
    try:
        yield
    except ending:
        if begun_here and local.is_claimed():
            with step("take down the local cloud"):
                local.remove()
        raise


def deploy(definition: "Environment", *, path: Path, local: LocalCloud) -> Context:
    """Deploy, wait for the nodes, and make it current. Raises: CommandError: it failed; the current one stays."""
    embedded = definition.cloud == "embedded"
    session = Session(
        environment=definition.name,
        cloud=definition.cloud,
        region=definition.region,
        stack_name=definition.stack_name,
        cluster_name=definition.cluster_name,
        port=local.port,
    )
    variables: dict[str, str] = {}
    if embedded:
        with step(Stage.CHECK) as progress:
            nodes = node_count(definition)
            progress.update(check_machine(home=local.home, orchestrator=definition.orchestrator, nodes=nodes))
        for line in capacity_of(home=local.home, orchestrator=definition.orchestrator).crowded(nodes):
            console.print(f"note: {line}", soft_wrap=True)
    cli = require_cdk_cli(app_folder(path))
    local.claim()
    if embedded:
        # There is no container engine: images are recorded, not built.
        variables = {**local.client_environment(region=definition.region), "CDK_DOCKER": str(SCRIPT)}
    cdk = Cdk(environment_file=path, variables=variables, work=local.home, cli=cli)
    synth = cdk.start_synth()
    try:
        if embedded:
            start_local_cloud(local, region=definition.region)
        context = Context(session=session, local=local)
        if embedded:
            settle(context, stack=BOOTSTRAP_STACK)
            _bootstrap(context, cdk=cdk, definition=definition)
            _make_administrators(context, definition=definition)
        settle(context, stack=definition.stack_name)
        with step(Stage.COMPARE):
            refuse_replacements(definition, context)
        with step(Stage.SYNTH) as progress:
            cdk.wait(synth, what="cdk synth", progress=lambda: None)
            progress.update(definition.stack_name)
    finally:
        cdk.end(synth)
    with step(Stage.DEPLOY) as progress:
        begun_ns = time.time_ns()
        child = cdk.start_deploy(stack_name=definition.stack_name)
        watch = _DeploymentWatch(context=context, progress=progress)
        try:
            cdk.wait(child, what="cdk deploy", progress=watch.look)
        except CommandError as error:
            problems = [watch.why_it_failed() or str(error)]
            # AWS's message names the instance, not the cause, and its logs go with what was begun.
            problems += local.node_failures(since_ns=begun_ns) if embedded else []
            problems += watch.state_of_stack()
            raise CommandError("\n".join(problems), exit_code=1) from None
        watch.look()
    if embedded:
        for line in watch.not_here():
            console.print(f"not here: {line}", soft_wrap=True)
        with step(Stage.NODES) as progress:
            failed = watch.wait_for_nodes(progress)
            if failed:
                raise CommandError("\n".join([*failed, *local.node_failures(since_ns=begun_ns)]), exit_code=1)
        if context.orchestrator == "eks" and not _is_record(context):
            with step(Stage.KUBECTL) as progress:
                progress.update(str(write_kubeconfig(context)))
    session.save(home=local.home)
    return context


def node_count(definition: "Environment") -> int:
    """Number of nodes, spares included."""
    cluster = definition.cluster
    counts = [group.total_count for group in cluster.instance_groups]
    return sum([*counts, *(group.instance_count for group in cluster.restricted_instance_groups)])


def _is_record(context: Context) -> bool:
    """Return True if the EKS cluster is a record only."""
    try:
        eks_cluster(context)
    except CommandError:
        return True
    return False


def _status_line(node: dict[str, Any]) -> str:
    status = node["InstanceStatus"]
    message = f": {status['Message']}" if status.get("Message") else ""
    return (
        f"instance {node['InstanceId']} of instance group {node['InstanceGroupName']} did not come into service, "
        f"it is {status['Status']}{message}"
    )


def start_local_cloud(local: LocalCloud, *, region: str) -> None:
    with step(Stage.AWS) as progress:
        local.go_on()
        local.start_aws()
        progress.update(local.endpoint)
    with step(Stage.CONTROL_PLANE):
        local.start_hyperpod(region=region)
        local.start_keeper(region=region)


def settle(context: Context, *, stack: str) -> None:
    """Wait for a stack operation of an earlier command. Raises: CommandError: it takes more than an hour."""
    client = context.client("cloudformation")
    if not is_under_way(stack_status(client, name=stack)):
        return
    with step(Stage.SETTLE) as progress:
        deadline = time.monotonic() + SETTLES_WITHIN_S
        while is_under_way(status := stack_status(client, name=stack)):
            progress.update(f"stack {stack} is in {status}")
            if time.monotonic() > deadline:
                raise CommandError(f"stack {stack} is in {status} for an hour; run holdfast up again", exit_code=1)
            time.sleep(SETTLES_POLL_S)


def _bootstrap(context: Context, *, cdk: Cdk, definition: "Environment") -> None:
    if stack_exists(context.client("cloudformation"), name=BOOTSTRAP_STACK):
        return
    with step(Stage.BOOTSTRAP):
        child = cdk.start_bootstrap(account=definition.account, region=definition.region)
        cdk.wait(child, what="cdk bootstrap", progress=lambda: None)


def _make_administrators(context: Context, *, definition: "Environment") -> None:
    if definition.eks is None or not definition.eks.admin_role_arns:
        return
    with step(Stage.ADMINISTRATORS) as progress:
        made = make_missing_roles(context.client("iam"), definition.eks.admin_role_arns, account=definition.account)
        progress.update(f"created missing roles: {', '.join(made)}" if made else "all roles exist")


class _DeploymentWatch:
    def __init__(self, *, context: Context, progress: Step) -> None:
        self._context, self._progress = context, progress
        self._seen_before = {event["EventId"] for event in self._events()}

    def look(self) -> None:
        fresh = [event for event in self._events() if event["EventId"] not in self._seen_before]
        done = {e["LogicalResourceId"] for e in fresh if e["ResourceStatus"].endswith("_COMPLETE")}
        words = [f"{len(done)} resources"] if fresh else []
        nodes = self._nodes()
        if nodes:
            running = sum(node["InstanceStatus"]["Status"] == "Running" for node in nodes)
            words.append(f"{running} of {len(nodes)} nodes running")
        self._progress.update(", ".join(words) or "nothing changed")

    def wait_for_nodes(self, progress: Step) -> list[str]:
        """
        Wait for all nodes, which may follow after the cluster. Returns HyperPod's status of failed nodes, a line each.
        """
        failing_since: dict[str, float] = {}
        deadline = time.monotonic() + NODES_TIMEOUT_S
        while True:
            nodes, now = self._nodes(), time.monotonic()
            waiting = [node for node in nodes if node["InstanceStatus"]["Status"] != "Running"]
            progress.update(f"{len(nodes) - len(waiting)} of {len(nodes)} running")
            failed = [node for node in waiting if node["InstanceStatus"]["Status"] == "Failure"]
            failing_since = {name: failing_since.get(name, now) for name in (node["InstanceId"] for node in failed)}
            given_up = [node for node in failed if now - failing_since[node["InstanceId"]] > GIVEN_UP_AFTER_S]
            if not waiting or given_up or now > deadline:
                return [_status_line(node) for node in given_up or waiting]
            time.sleep(NODES_POLL_S)

    def not_here(self) -> list[str]:
        return not_here(self._events())

    def why_it_failed(self) -> str:
        """Failures of this deployment in CloudFormation, first one first; empty without any."""
        failures = [
            f"{event['LogicalResourceId']} ({event['ResourceType']}): {event.get('ResourceStatusReason', '')}"
            for event in reversed(self._events())
            if event["EventId"] not in self._seen_before
            and event["ResourceStatus"].endswith("_FAILED")
            and "cancelled" not in event.get("ResourceStatusReason", "").lower()
        ]
        if not failures:
            return ""
        return f"stack {self._context.session.stack_name} was not deployed and was rolled back: " + "\n".join(failures)

    def state_of_stack(self) -> list[str]:
        """Stack status after a failure, in one line; empty without a stack."""
        try:
            status = str(self._context.describe_stack()["StackStatus"])
        except AwsError:
            return []
        return [after_failure(self._context.session.stack_name, status=status)]

    def _events(self) -> list[dict[str, Any]]:
        from botocore.exceptions import ClientError

        pages = self._context.client("cloudformation").get_paginator("describe_stack_events")
        try:
            # All of them: what failed lies some pages before the end of the rollback.
            found = pages.paginate(StackName=self._context.session.stack_name).build_full_result()
        except ClientError:
            return []
        events: list[dict[str, Any]] = found["StackEvents"]
        return events

    def _nodes(self) -> list[dict[str, Any]]:
        from botocore.exceptions import ClientError

        try:
            answer = self._context.client("sagemaker").list_cluster_nodes(
                ClusterName=self._context.session.cluster_name, MaxResults=100
            )
        except ClientError:
            return []
        nodes: list[dict[str, Any]] = answer["ClusterNodeSummaries"]
        return nodes
