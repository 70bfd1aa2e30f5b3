"""StartSession, ResumeSession and TerminateSession. moto has the other operations of SSM."""

# ruff: noqa: N803 - arguments bear the names of the API members

from collections.abc import Sequence
from typing import Any

from botocore.exceptions import ClientError

from holdfast.localcloud.aws.clients import ClientFactory
from holdfast.localcloud.aws.common import ServiceError, principal_of
from holdfast.localcloud.aws.ssm.machine import EnterNode
from holdfast.localcloud.aws.ssm.sessions import Sessions
from holdfast.session_manager import ClusterTarget, DocumentError, plan_of


class SessionManager:
    def __init__(
        self, *, client: ClientFactory, account: str, region: str, sessions: Sessions, enter: EnterNode
    ) -> None:
        self._client = client
        self._account = account
        self._region = region
        self._sessions = sessions
        self._enter = enter

    def start_session(
        self,
        *,
        Target: str,
        DocumentName: str | None = None,
        Parameters: dict[str, Sequence[str]] | None = None,
        Reason: str = "",  # noqa: ARG002 - recorded by CloudTrail alone
    ) -> dict[str, Any]:
        try:
            plan = plan_of(DocumentName, Parameters)
        except DocumentError as error:
            raise ServiceError(error.code, str(error)) from None
        target = self._node(Target)
        machine = self._enter(target.instance_id)
        opened = self._sessions.start(target=Target, machine=machine, plan=plan, principal=principal_of(self._account))
        return {"SessionId": opened.session_id, "TokenValue": opened.token, "StreamUrl": opened.url}

    def resume_session(self, *, SessionId: str) -> dict[str, Any]:
        opened = self._sessions.resume(SessionId, principal=principal_of(self._account))
        return {"SessionId": opened.session_id, "TokenValue": opened.token, "StreamUrl": opened.url}

    def terminate_session(self, *, SessionId: str) -> dict[str, Any]:
        self._sessions.terminate(SessionId, principal=principal_of(self._account))
        return {"SessionId": SessionId}

    def close(self) -> None:
        self._sessions.close()

    def _node(self, text: str) -> ClusterTarget:
        """Return the target of a node in service. Raises: ServiceError: TargetNotConnected."""
        target = ClusterTarget.parse(text)
        if target is None:
            raise _not_connected(text)
        arn = f"arn:aws:sagemaker:{self._region}:{self._account}:cluster/{target.cluster_id}"
        try:
            answer = self._client("sagemaker").describe_cluster_node(ClusterName=arn, NodeId=target.instance_id)
        except ClientError:
            raise _not_connected(text) from None
        if answer["NodeDetails"]["InstanceGroupName"] != target.group:
            raise _not_connected(text)
        return target


def _not_connected(target: str) -> ServiceError:
    return ServiceError("TargetNotConnected", f"{target} is not connected.")
