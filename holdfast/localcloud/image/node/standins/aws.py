"""aws: operations of AWS's API through boto3, at the node's endpoint; no custom commands."""

from __future__ import annotations

import json
import os
import re
import sys
from typing import Any

SETTINGS = "/etc/holdfast/aws"
"""NAME=VALUE lines with AWS_ENDPOINT_URL and the like, for callers whose environment sudo has emptied."""
_GLOBAL = {"--region": "region", "--output": "output", "--query": "query", "--endpoint-url": "endpoint"}


def main(argv: list[str]) -> int:
    import botocore.exceptions

    options, plain, parameters = _split(argv)
    if len(plain) != 2:
        sys.stderr.write("aws: holdfast's stand-in supports: aws <service> <operation> [--parameter value ...]\n")
        return 252
    _read_settings()
    try:
        answer = _call(plain[0], plain[1], parameters, options)
    except (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError, ValueError) as error:
        sys.stderr.write(f"\n{error}\n")
        return 254 if isinstance(error, botocore.exceptions.ClientError) else 255
    if "query" in options:
        import jmespath

        answer = jmespath.search(options["query"], answer)
    print(_render(answer, output=options.get("output", "json")))
    return 0


def _split(argv: list[str]) -> tuple[dict[str, str], list[str], dict[str, list[str]]]:
    options: dict[str, str] = {}
    plain: list[str] = []
    parameters: dict[str, list[str]] = {}
    rest, current = list(argv), ""
    while rest:
        word = rest.pop(0)
        if word in _GLOBAL and rest:
            options[_GLOBAL[word]], current = rest.pop(0), ""
        elif word.startswith("--"):
            current = word[2:]
            parameters[current] = []
        elif current:
            parameters[current].append(word)
        else:
            plain.append(word)
    return options, plain, parameters


def _read_settings() -> None:
    try:
        with open(SETTINGS, encoding="utf-8") as file:
            pairs = [line.strip().partition("=") for line in file if "=" in line]
    except OSError:
        return
    for name, _, value in pairs:
        os.environ.setdefault(name, value)


def _call(service: str, operation: str, parameters: dict[str, list[str]], options: dict[str, str]) -> Any:
    import boto3
    from botocore import xform_name

    client = boto3.client(service, region_name=options.get("region"), endpoint_url=options.get("endpoint"))
    if (service, operation) == ("ecr", "get-login-password"):  # the one custom command that the scripts use
        import base64

        data = client.get_authorization_token()["authorizationData"][0]["authorizationToken"]
        options["output"] = "text"
        return base64.b64decode(data).decode().partition(":")[2]
    model = client.meta.service_model
    names = {xform_name(name, "-"): name for name in model.operation_names}
    if operation not in names:
        raise ValueError(f"aws: holdfast's stand-in does not support {service} {operation}")
    shape = model.operation_model(names[operation]).input_shape
    members = dict(shape.members) if shape is not None else {}
    known = {xform_name(name, "-"): (name, member) for name, member in members.items()}
    arguments = {}
    for name, values in parameters.items():
        if name not in known:
            raise ValueError(f"Unknown options: --{name}")
        arguments[known[name][0]] = _value(known[name][1].type_name, values)
    answer = getattr(client, xform_name(names[operation]))(**arguments)
    answer.pop("ResponseMetadata", None)
    return answer


def _value(kind: str, words: list[str]) -> Any:
    if words and re.match(r"\s*[\[{]", words[0]):
        return json.loads(words[0])
    if kind == "list":
        return [word for text in words for word in text.split(",")]
    if kind in ("structure", "map"):
        return dict(pair.partition("=")[::2] for text in words for pair in text.split(","))
    if kind == "boolean":
        return not words or words[0] == "true"
    return int(words[0]) if kind in ("integer", "long") else " ".join(words)


def _render(answer: Any, *, output: str) -> str:
    if output == "text":
        if isinstance(answer, list):
            return "\n".join(_render(one, output=output) for one in answer)
        return "None" if answer is None else str(answer)
    return json.dumps(answer, indent=4, default=str)
