"""
All mistakes of a HoldfastJob, a line each: the same at admission and in the condition Invalid.

The CRD's schema leaves the spec open, so that one place judges it and nothing is dropped without a message.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from holdfast_common import JOB_GROUP
from holdfast_operator.jobs.fields import number, shown, unknown_fields
from holdfast_operator.jobs.log_rules import log_rule_mistakes

MOST_PROCESSES, MOST_LAUNCHERS = 1024, 8192
NAME = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")
LONGEST = 63
"""Of a host name and of a Service's name (RFC 1035 label)."""
OWN_VARIABLES = frozenset({
    "HOLDFAST_TOKEN", "JOB_COMPLETION_INDEX", "PET_NNODES", "PET_NPROC_PER_NODE", "PET_ON_SIGTERM", "PET_RDZV_ID",
    "PET_SIZES", "PET_SPARE_NODES",
})  # fmt: skip
OWN_LABELS = f"{JOB_GROUP}/"
_SPEC = {
    "deadlines", "logRules", "nodes", "processesPerNode", "recovery", "suspend", "template", "ttlSecondsAfterFinished",
}  # fmt: skip
_NODES = {"max", "min", "size", "sizes", "spares", "step"}
_RECOVERY = {"jobRestarts", "launcherRestarts", "nodeFailures", "periodSeconds", "restartAllAfter"}
_DEADLINES = {"activeSeconds", "faultSeconds", "startSeconds"}


def mistakes(manifest: Mapping[str, Any]) -> list[str]:
    """Return all mistakes of a job; none for a valid one."""
    spec = manifest.get("spec")
    if not isinstance(spec, dict):
        return [f"spec: got {shown(spec)}; allowed: an object with nodes, processesPerNode and template"]
    found = [*unknown_fields(spec, _SPEC, "spec")]
    found += number(spec, "processesPerNode", "spec", least=1, most=MOST_PROCESSES, default=1)
    found += number(spec, "ttlSecondsAfterFinished", "spec", least=0)
    if not isinstance(spec.get("suspend", False), bool):
        found.append(f"spec.suspend: got {shown(spec['suspend'])}; allowed: true, false")
    nodes = spec.get("nodes")
    found += _nodes(nodes) if isinstance(nodes, dict) else [_no_object("spec.nodes", nodes, "size or max")]
    for name, known in (("recovery", _RECOVERY), ("deadlines", _DEADLINES)):
        found += _counts(spec.get(name, {}), known, f"spec.{name}")
    found += log_rule_mistakes(spec.get("logRules", []), "spec.logRules")
    template = spec.get("template")
    found += _template(template) if isinstance(template, dict) else [_no_object("spec.template", template, "spec")]
    return [*found, *_name(manifest)]


def sizes_of(nodes: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the sizes of an elastic job, ascending, from valid ``nodes``; none for a fixed size."""
    if nodes.get("sizes"):
        return tuple(sorted(set(nodes["sizes"])))
    least, most = _bounds(nodes)
    return tuple(range(least, most + 1, nodes.get("step", 1))) if least < most else ()


def _bounds(nodes: Mapping[str, Any]) -> tuple[int, int]:
    given = [nodes[name] for name in ("min", "size", "max") if name in nodes] or [1]
    return nodes.get("min", min(given)), nodes.get("max", max(given))


def _nodes(nodes: Mapping[str, Any]) -> Iterator[str]:
    path = "spec.nodes"
    found = [*unknown_fields(nodes, _NODES, path)]
    for name, least in (("min", 1), ("max", 1), ("size", 1), ("step", 1), ("spares", 0)):
        found += number(nodes, name, path, least=least, most=MOST_LAUNCHERS)
    sizes = nodes.get("sizes")
    if sizes is not None and not (isinstance(sizes, list) and sizes and all(_is_count(one) for one in sizes)):
        found.append(f"{path}.sizes: got {shown(sizes)}; allowed: a list of whole numbers from 1")
    yield from found
    if found:
        return
    if "size" not in nodes and "max" not in nodes and not sizes:
        yield f"{path}: got none of size, max and sizes; allowed: at least one"
        return
    if sizes and "step" in nodes:
        yield f"{path}: got step and sizes; allowed: one of them"
        return
    least, most = _bounds({**nodes, **({"min": min(sizes), "max": max(sizes)} if sizes else {})})
    if sizes and "max" in nodes and nodes["max"] != most:
        yield f"{path}.sizes: got {_listed(sizes)} with max {nodes['max']}; allowed: sizes up to max, and max itself"
    if sizes and "min" in nodes and nodes["min"] != least:
        yield f"{path}.sizes: got {_listed(sizes)} with min {nodes['min']}; allowed: sizes from min, and min itself"
    if least > most:
        yield f"{path}.min: got {least} with max {most}; allowed: 1 to {most}"
        return
    yield from _sizes(nodes, least=least, most=most)


def _sizes(nodes: Mapping[str, Any], *, least: int, most: int) -> Iterator[str]:
    path, spares = "spec.nodes", nodes.get("spares", 0)
    allowed = sizes_of(nodes) or (most,)
    if most not in allowed:
        yield f"{path}.step: got {nodes['step']}, which does not lead from min {least} to max {most}"
    if nodes.get("size", allowed[-1]) not in allowed:
        yield f"{path}.size: got {nodes['size']}; allowed: {_listed(allowed)}"
    if spares >= most:
        yield f"{path}.spares: got {spares}; allowed: 0 to {most - 1}, fewer than nodes"
    quorum = (most + spares) // 2 + 1
    if least + spares < quorum:
        smallest = "sizes" if nodes.get("sizes") else "min"
        launchers = most + spares
        yield (
            f"{path}.{smallest}: got {least} with max {most} and spares {spares}; allowed: "
            f"{quorum - spares} to {most}, since fewer than {quorum} of {launchers} launchers are no majority"
        )


def _template(template: Mapping[str, Any]) -> Iterator[str]:
    path = "spec.template"
    yield from unknown_fields(template, {"metadata", "spec"}, path)
    metadata = template.get("metadata") or {}
    labels = (metadata.get("labels") or {}) if isinstance(metadata, dict) else {}
    if any(str(name).startswith(OWN_LABELS) for name in labels):
        yield f"{path}.metadata.labels: got labels of {OWN_LABELS}; allowed: labels of other prefixes"
    pod = template.get("spec")
    if not isinstance(pod, dict):
        yield _no_object(f"{path}.spec", pod, "containers")
        return
    for name in ("hostname", "subdomain", "nodeName"):
        if name in pod:
            yield f"{path}.spec.{name}: got {shown(pod[name])}; leave it out, the operator sets it"
    if pod.get("restartPolicy", "Never") != "Never":
        yield f"{path}.spec.restartPolicy: got {shown(pod['restartPolicy'])}; allowed: Never"
    containers = pod.get("containers")
    if not isinstance(containers, list) or not containers or not all(isinstance(one, dict) for one in containers):
        yield f"{path}.spec.containers: got {shown(containers)}; allowed: containers, the first with holdfast-run"
        return
    first, at = containers[0], f"{path}.spec.containers[0]"
    if not isinstance(first.get("image"), str) or not first["image"]:
        yield f"{at}.image: got {shown(first.get('image'))}; allowed: the name of an image"
    variables = first.get("env") or ()
    for name in sorted(OWN_VARIABLES & {one.get("name") for one in variables if isinstance(one, dict)}):
        yield f"{at}.env: got {name}; leave it out, the operator sets it"


def _name(manifest: Mapping[str, Any]) -> Iterator[str]:
    name = str((manifest.get("metadata") or {}).get("name") or "")
    nodes = (manifest.get("spec") or {}).get("nodes")
    most = LONGEST - 1 - len(str(MOST_LAUNCHERS if not isinstance(nodes, dict) else _last_index(nodes)))
    if not NAME.fullmatch(name) or len(name) > most:
        yield (
            f"metadata.name: got {name!r} with {len(name)} characters; allowed: a-z, 0-9 and -, from a letter, at most "
            f"{most} characters, since pods are called {name[:8]}...-INDEX"
        )


def _last_index(nodes: Mapping[str, Any]) -> int:
    counts = [nodes.get("max"), nodes.get("size"), *(nodes.get("sizes") or ())]
    spares = nodes.get("spares", 0)
    return max((one for one in counts if _is_count(one)), default=1) + (spares if _is_count(spares) else 0) - 1


def _counts(found: Any, known: set[str], path: str) -> Iterator[str]:
    if not isinstance(found, dict):
        yield _no_object(path, found, ", ".join(sorted(known)))
        return
    yield from unknown_fields(found, known, path)
    for name in sorted(known):
        yield from number(found, name, path, least=1 if name.endswith("Seconds") else 0)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _listed(sizes: Any) -> str:
    return ", ".join(map(str, sorted(sizes)))


def _no_object(path: str, value: object, fields: str) -> str:
    return f"{path}: got {shown(value)}; allowed: an object with {fields}"
