"""
Requests to AWS: an operation, its parameters, its answer.

On AWS they go through botocore. The embedded AWS is called in AWS's JSON protocol, signed here, because loading
botocore takes longer than ``holdfast status`` may. Answers and errors are the same.
"""

import contextlib
import json
import urllib.parse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.localcloud.home import Keys, signed_headers

if TYPE_CHECKING:
    from xml.etree import ElementTree

TARGETS = {
    "fsx": "AWSSimbaAPIService_v20180301",
    "logs": "Logs_20140328",
    "sagemaker": "SageMaker",
}
"""The X-Amz-Target prefix of the services that speak JSON (botocore's service models, ``targetPrefix``)."""
PATHS = {
    "DescribeCluster": "/clusters/{name}",
    "ListAccessEntries": "/clusters/{clusterName}/access-entries",
}
"""Operations of EKS that only read; parameters without a place in the path are the query (botocore's service model)."""

CLOUDFORMATION_VERSION, STS_VERSION = "2010-05-15", "2011-06-15"
TIMEOUT_S = 30.0


class AwsError(Exception):
    """Error of an AWS service; ``code`` is AWS's own, such as ResourceNotFoundException."""

    def __init__(self, *, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code, self.message = code, message


class UnreachableError(Exception):
    """The embedded AWS does not answer."""


def ask_botocore(client: Any, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
    from botocore import xform_name
    from botocore.exceptions import ClientError

    try:
        answer: dict[str, Any] = getattr(client, xform_name(operation))(**parameters)
    except ClientError as error:
        raise AwsError(code=error.response["Error"]["Code"], message=error.response["Error"]["Message"]) from None
    return answer


@dataclass(frozen=True, kw_only=True)
class Embedded:
    """Endpoint, keys and region of the embedded AWS."""

    endpoint: str
    keys: Keys
    region: str


def ask_json(aws: Embedded, *, service: str, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
    headers = {"X-Amz-Target": f"{TARGETS[service]}.{operation}", "Content-Type": "application/x-amz-json-1.1"}
    status, body = _send(aws, service=service, body=json.dumps(parameters), headers=headers)
    answer: dict[str, Any] = json.loads(body or b"{}")
    if status >= 300:
        code = str(answer.get("__type", status)).rpartition("#")[2]
        raise AwsError(code=code, message=str(answer.get("message", answer.get("Message", ""))))
    return answer


def ask_eks(aws: Embedded, *, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Send a read request to EKS, which speaks REST."""
    place = PATHS[operation]
    query = {name: value for name, value in parameters.items() if f"{{{name}}}" not in place}
    path = place.format(**parameters) + (f"?{urllib.parse.urlencode(query)}" if query else "")
    status, body = _send(aws, service="eks", method="GET", path=path)
    answer: dict[str, Any] = json.loads(body or b"{}")
    if status >= 300:
        code = str(answer.get("__type", answer.get("code", status))).rpartition("#")[2]
        raise AwsError(code=code, message=str(answer.get("message", "")))
    return answer


def ask_assume_role(aws: Embedded, *, parameters: dict[str, Any]) -> dict[str, Any]:
    """Send AssumeRole to STS, which answers in XML."""
    root = _ask_query(aws, service="sts", fields={"Action": "AssumeRole", "Version": STS_VERSION, **parameters})
    credentials = root.find(".//{*}Credentials")
    assert credentials is not None
    return {"Credentials": {child.tag.rpartition("}")[2]: child.text for child in credentials}}


def ask_describe_stack(aws: Embedded, *, stack_name: str) -> dict[str, Any]:
    """Send DescribeStacks for one stack to CloudFormation, which answers in XML."""
    fields = {"Action": "DescribeStacks", "Version": CLOUDFORMATION_VERSION, "StackName": stack_name}
    root = _ask_query(aws, service="cloudformation", fields=fields)
    stack = root.find(".//{*}Stacks/{*}member")
    assert stack is not None
    outputs = [{child.tag.rpartition("}")[2]: child.text for child in each} for each in stack.findall("{*}Outputs/*")]
    return {"StackStatus": _text(stack, "{*}StackStatus"), "Outputs": outputs}


def ask_template(aws: Embedded, *, stack_name: str) -> str:
    """Return the template of a stack, as text."""
    fields = {"Action": "GetTemplate", "Version": CLOUDFORMATION_VERSION, "StackName": stack_name}
    return _text(_ask_query(aws, service="cloudformation", fields=fields), ".//{*}TemplateBody")


def _ask_query(aws: Embedded, *, service: str, fields: dict[str, str]) -> "ElementTree.Element":
    from xml.etree import ElementTree

    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    status, body = _send(aws, service=service, body=urllib.parse.urlencode(fields), headers=headers)
    root = ElementTree.fromstring(body)  # noqa: S314 - written by our own process
    if status >= 300:
        raise AwsError(code=_text(root, ".//{*}Error/{*}Code"), message=_text(root, ".//{*}Error/{*}Message"))
    return root


def _text(element: "ElementTree.Element", path: str) -> str:
    return element.findtext(path, default="")


def _send(
    aws: Embedded,
    *,
    service: str,
    body: str = "",
    headers: dict[str, str] | None = None,
    method: str = "POST",
    path: str = "/",
) -> tuple[int, bytes]:
    import http.client

    url, content = f"{aws.endpoint}{path}", body.encode()
    signature = signed_headers(aws.keys, method=method, url=url, region=aws.region, service=service, body=content)
    connection = http.client.HTTPConnection(aws.endpoint.removeprefix("http://"), timeout=TIMEOUT_S)
    with contextlib.closing(connection):
        try:
            connection.request(method, path, body=content, headers={**(headers or {}), **signature})
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (http.client.HTTPException, OSError) as error:
            raise UnreachableError(f"the embedded AWS at {aws.endpoint} does not answer: {error}") from None
