"""
Custom resources by their functions: CloudFormation's request, the uploaded function, its answer.

Only the functions of Holdfast's own types run. Unlike on AWS, a function that ends without an answer fails its
resource at once and is not called again.
"""

import contextlib
import platform
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from holdfast.localcloud.aws.clients import Clients
from holdfast.localcloud.aws.cloudformation.resources.custom.answers import Answers
from holdfast.localcloud.aws.cloudformation.resources.custom.functions import FAILED
from holdfast.localcloud.aws.cloudformation.resources.handlers import (
    LocalMachine,
    Made,
    Properties,
    ResourceContext,
    ResourceError,
)
from holdfast.localcloud.functions import FunctionError, LambdaFunction, PackageError, Packages, Run, run
from holdfast.localcloud.home import Keys

DEFAULT_TIMEOUT_S, DEFAULT_MEMORY_MIB, DEFAULT_TMP_MIB = 3, 128, 512
"""Of AWS::Lambda::Function: Timeout, MemorySize, EphemeralStorage (its CloudFormation reference, 2026-11)."""
PATH = "/var/lang/bin:/usr/local/bin:/usr/bin/:/bin:/opt/bin"
BATCH_BYTES, PER_EVENT_BYTES = 1_000_000, 26
"""PutLogEvents takes 1,048,576 bytes at once, and counts 26 more for each event (its API reference)."""
UNANSWERED = (
    "CloudFormation did not receive a response from your custom resource. Please check your logs for requestId [{id}]."
)


def answered(
    context: ResourceContext,
    machine: LocalMachine,
    *,
    kind: str,
    request: str,
    properties: Properties,
    made: Made | None = None,
    old: Properties | None = None,
    expected: str = "",
) -> str:
    """
    Run a custom resource's function.

    Args:
        kind: Type of the resource.
        request: "Create", "Update" or "Delete".
        properties: Of the resource; ServiceToken names the function.
        made: Current resource. Default: none.
        old: Previous properties, for an update.
        expected: Physical id of a creation, recorded before the function starts, so that an interrupted one is
            deleted. Default: unknown before the answer.

    Returns:
        The physical id.

    Raises:
        ResourceError: The function failed, in CloudFormation's words.
    """
    call = _Call(context, machine, arn=str(properties["ServiceToken"]))
    event = {
        "RequestType": request,
        "ServiceToken": call.arn,
        "StackId": context.stack_id,
        "RequestId": call.request_id,
        "LogicalResourceId": context.logical_id,
        "ResourceType": kind,
        "ResourceProperties": _texts(properties),
        **({"PhysicalResourceId": made.physical_id} if made is not None else {}),
        **({"OldResourceProperties": _texts(old)} if old is not None else {}),
    }
    function, keys = call.prepared()
    if made is None and expected:
        context.note(expected)
    with Answers() as answers:
        try:
            done = run(
                function,
                event={**event, "ResponseURL": answers.url},
                pause=context.pause,
                root=machine.home / "run" / "function",
            )
        except FunctionError as error:
            if made is None:
                context.note("")  # it has not begun
            raise call.unable(error) from None
        answer = answers.answer
    call.log(keys, done)
    if answer is None:
        why = "it timed out" if done.timed_out else (done.output.strip().splitlines() or ["no output"])[-1]
        raise ResourceError(
            f"{UNANSWERED.format(id=call.request_id)} The function {call.name} ended without one: {why}"
        )
    physical_id = str(answer.get("PhysicalResourceId") or "")
    if physical_id and made is None:
        context.note(physical_id)
    if answer["Status"] == "FAILED":
        raise ResourceError(f"{FAILED}{answer.get('Reason', '')} (RequestId: {call.request_id})")
    return physical_id


class _Call:
    def __init__(self, context: ResourceContext, machine: LocalMachine, *, arn: str) -> None:
        self.arn, self.name, self.request_id = arn, arn.rsplit(":", 1)[-1], str(uuid.uuid4())
        self._context, self._machine = context, machine
        self._function = context.function(arn)
        if not self._function:
            raise ResourceError(f"no stack created the function {arn}: no code to run")
        self._began = datetime.now(UTC)
        self._stream = f"{self._began:%Y/%m/%d}/[$LATEST]{uuid.uuid4().hex}"
        self._group = str(self._function.get("LoggingConfig", {}).get("LogGroup") or f"/aws/lambda/{self.name}")

    def prepared(self) -> tuple[LambdaFunction, Keys]:
        keys, found = self._keys(), self._function
        layers = [self._context.layer(arn).get("Content", {}) for arn in found.get("Layers", ())]
        try:
            code, above = self._folder([found.get("Code", {})]), self._folder(layers) if layers else None
        except PackageError as error:
            raise self.unable(error) from None
        function = LambdaFunction(
            code=code,
            layers=above,
            handler=found["Handler"],
            environment={**self._own_variables(), **self._lambda_variables(keys)},
            context=self._reported(),
            timeout_s=float(found.get("Timeout", DEFAULT_TIMEOUT_S)),
            tmp_mib=int(found.get("EphemeralStorage", {}).get("Size", DEFAULT_TMP_MIB)),
        )
        return function, keys

    def unable(self, error: Exception) -> ResourceError:
        return ResourceError(f"the function {self.name} cannot run here: {error}")

    def _keys(self) -> Keys:
        sts = self._context.client("sts")
        made = sts.assume_role(RoleArn=self._function["Role"], RoleSessionName=self.name[:64])["Credentials"]
        return Keys(
            access_key_id=made["AccessKeyId"],
            secret_access_key=made["SecretAccessKey"],
            session_token=made["SessionToken"],
        )

    def _folder(self, places: Sequence[Mapping[str, Any]]) -> Path:
        s3 = self._context.client("s3")

        def fetch(bucket: str, key: str) -> bytes:
            body: bytes = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
            return body

        known, fetched = [], []
        for place in places:
            bucket, key = place.get("S3Bucket"), place.get("S3Key")
            if not bucket or not key:
                raise PackageError("its code is not in S3")
            try:
                known.append(f"{bucket}/{key} {s3.head_object(Bucket=bucket, Key=key)['ETag']}")
            except ClientError as error:
                raise PackageError(f"s3://{bucket}/{key} cannot be read: {error}") from None
            fetched.append(lambda bucket=bucket, key=key: fetch(bucket, key))
        return Packages(self._machine.home / "functions").unpacked("\n".join(known), fetch=fetched)

    def _own_variables(self) -> dict[str, str]:
        variables = self._function.get("Environment", {}).get("Variables", {})
        return {"PATH": PATH, "LANG": "en_US.UTF-8", "TZ": ":UTC", "HOME": "/tmp", **variables}  # noqa: S108

    def _lambda_variables(self, keys: Keys) -> dict[str, str]:
        """Source: Lambda developer guide, configuration-envvars (2026-11)."""
        return {
            "_HANDLER": self._function["Handler"],
            "AWS_ACCESS_KEY_ID": keys.access_key_id,
            "AWS_SECRET_ACCESS_KEY": keys.secret_access_key,
            "AWS_SESSION_TOKEN": keys.session_token,
            "AWS_REGION": self._context.region,
            "AWS_DEFAULT_REGION": self._context.region,
            "AWS_ENDPOINT_URL": self._machine.endpoint,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_EXECUTION_ENV": f"AWS_Lambda_{self._function.get('Runtime', '')}",
            "AWS_LAMBDA_FUNCTION_NAME": self.name,
            "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(self._function.get("MemorySize", DEFAULT_MEMORY_MIB)),
            "AWS_LAMBDA_LOG_GROUP_NAME": self._group,
            "AWS_LAMBDA_LOG_STREAM_NAME": self._stream,
            "LAMBDA_TASK_ROOT": "/var/task",
            "LAMBDA_RUNTIME_DIR": "/var/runtime",
        }

    def _reported(self) -> dict[str, str | int]:
        return {
            "function_name": self.name,
            "function_version": "$LATEST",
            "invoked_function_arn": self.arn,
            "memory_limit_in_mb": int(self._function.get("MemorySize", DEFAULT_MEMORY_MIB)),
            "aws_request_id": self.request_id,
            "log_group_name": self._group,
            "log_stream_name": self._stream,
        }

    def log(self, keys: Keys, done: Run) -> None:
        """Write the function's log with the rights of its role, as Lambda does; nothing without them."""
        took_ms = (datetime.now(UTC) - self._began).total_seconds() * 1000
        runtime = self._function.get("Runtime", "")
        over = f" Task timed out after {self._function.get('Timeout', DEFAULT_TIMEOUT_S)} seconds"
        lines = [
            f"INIT_START Runtime Version: {runtime} (here the interpreter of Holdfast: {platform.python_version()})",
            f"START RequestId: {self.request_id} Version: $LATEST",
            *done.output.splitlines(),
            *([f"RequestId: {self.request_id} Error:{over}"] if done.timed_out else []),
            f"END RequestId: {self.request_id}",
            f"REPORT RequestId: {self.request_id}\tDuration: {took_ms:.2f} ms",
        ]
        here = self._context
        clients = Clients(endpoint=self._machine.endpoint, account=here.account, region=here.region, keys=keys)
        logs = clients("logs")
        with contextlib.closing(logs), contextlib.suppress(ClientError):
            with contextlib.suppress(logs.exceptions.ResourceAlreadyExistsException):
                logs.create_log_stream(logGroupName=self._group, logStreamName=self._stream)
            moment = int(datetime.now(UTC).timestamp() * 1000)
            for batch in _batches([line for line in lines if line]):
                events = [{"timestamp": moment, "message": line} for line in batch]
                logs.put_log_events(logGroupName=self._group, logStreamName=self._stream, logEvents=events)


def _batches(lines: Sequence[str]) -> list[list[str]]:
    batches: list[list[str]] = [[]]
    size = 0
    for line in lines:
        bytes_ = len(line.encode()) + PER_EVENT_BYTES
        if size + bytes_ > BATCH_BYTES and batches[-1]:
            batches.append([])
            size = 0
        batches[-1].append(line)
        size += bytes_
    return batches


def _texts(value: Any) -> Any:
    """Convert numbers and booleans to text, as CloudFormation does for custom resources."""
    if isinstance(value, Mapping):
        return {key: _texts(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_texts(item) for item in value]
    if isinstance(value, bool):
        return str(value).lower()
    return value if value is None else str(value)
