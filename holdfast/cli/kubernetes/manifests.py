"""
Manifests of a job: parse, check, complete. Pure but for generated names.

Any kind is accepted. The job is the first object with pods; the label ``app.kubernetes.io/instance`` joins several
objects (Kubernetes, "Recommended Labels", read on 2026-11-23).
"""

import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]
"""An object of the API."""
JOB_LABEL = "app.kubernetes.io/instance"
MANAGED_BY = "app.kubernetes.io/managed-by"
DEFAULT_NAMESPACE = "default"
NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
MOST_FILES_BYTES = 1_000_000
"""Of a ConfigMap's data, which etcd keeps: 1 MiB with names and the rest (Kubernetes, "ConfigMaps")."""
_OF_SUFFIXES = "bcdfghjklmnpqrstvwxz2456789"
"""Of generated names (Kubernetes, apimachinery/pkg/util/rand/rand.go); apply generates none."""
_FILE_NAME = re.compile(r"[A-Za-z0-9._-]{1,253}")


class ManifestError(ValueError):
    """An invalid job for Kubernetes; the message has the reason."""


@dataclass(frozen=True, kw_only=True)
class JobName:
    name: str
    namespace: str = DEFAULT_NAMESPACE

    def __str__(self) -> str:
        return self.name if self.namespace == DEFAULT_NAMESPACE else f"{self.namespace}/{self.name}"


def parse_job_name(text: str) -> JobName:
    """Parse NAME or NAMESPACE/NAME. Raises: ManifestError."""
    namespace, _, name = text.rpartition("/")
    if not all(NAME.fullmatch(part) for part in (name, namespace or DEFAULT_NAMESPACE)):
        raise ManifestError(f"got {text!r} for a job; allowed: NAME or NAMESPACE/NAME, as holdfast jobs shows them")
    return JobName(name=name, namespace=namespace or DEFAULT_NAMESPACE)


def job_name_of(thing: Object) -> JobName:
    metadata = thing["metadata"]
    name = metadata.get("labels", {}).get(JOB_LABEL) or metadata["name"]
    return JobName(name=name, namespace=metadata.get("namespace") or DEFAULT_NAMESPACE)


def parse_manifests(text: str) -> list[Object]:
    """Return the objects of YAML documents, with lists flattened. Raises: ManifestError."""
    import yaml  # slow to load, and few commands read manifests

    try:
        documents = list(yaml.safe_load_all(text))
    except yaml.YAMLError as error:
        raise ManifestError(f"invalid YAML: {error}") from None
    except RecursionError:
        raise ManifestError("got values nested too deeply") from None
    except (ValueError, ArithmeticError, LookupError, AttributeError):  # PyYAML has no error of its own for it
        raise ManifestError("a value is an invalid date or number; write it in quotes") from None
    found = [_checked(one) for document in documents if document is not None for one in _listed(document)]
    if not found:
        raise ManifestError("got no objects; allowed: manifests as for kubectl apply")
    return found


def _listed(document: Any) -> Iterator[Any]:
    if isinstance(document, dict) and str(document.get("kind", "")).endswith("List") and "items" in document:
        yield from document["items"] or ()
    else:
        yield document


def _checked(thing: Any) -> Object:
    if not isinstance(thing, dict):
        raise ManifestError(f"got {str(thing)[:60]!r}; allowed: objects with apiVersion, kind and metadata")
    metadata = thing.get("metadata")
    if isinstance(metadata, dict) and "name" not in metadata and isinstance(metadata.get("generateName"), str):
        metadata["name"] = metadata["generateName"] + "".join(secrets.choice(_OF_SUFFIXES) for _ in range(5))
    lacking = [name for name in ("apiVersion", "kind") if not isinstance(thing.get(name), str)]
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        lacking.append("metadata.name")
    if lacking:
        raise ManifestError(f"an object of kind {thing.get('kind')!r} lacks {', '.join(lacking)}")
    for spec in pod_specs(thing):
        for container in spec["containers"]:
            _write_quantities(container)
    return thing


def _write_quantities(container: Any) -> None:
    """Convert quantities to text, as the API server stores them: server-side apply of old versions requires text."""
    resources = container.get("resources") if isinstance(container, dict) else None
    for amounts in resources.values() if isinstance(resources, dict) else ():
        if isinstance(amounts, dict):
            amounts |= {name: str(value) for name, value in amounts.items() if isinstance(value, int | float)}


def job_of(objects: Sequence[Object]) -> JobName:
    """Return the job that a file describes. Raises: ManifestError: no object has pods."""
    found = next((one for one in objects if any(pod_specs(one))), None)
    if found is None:
        kinds = ", ".join(sorted({one["kind"] for one in objects}))
        raise ManifestError(
            f"none of its objects has a pod template ({kinds}); allowed: at least one that has, such as a Job; apply "
            "others with: kubectl apply -f"
        )
    return job_name_of(found)


def pod_specs(thing: Any) -> Iterator[Mapping[str, Any]]:
    """Yield each pod specification in an object at any depth, also in unknown kinds."""
    if isinstance(thing, dict):
        if isinstance(thing.get("containers"), list):
            yield thing
            return
        for value in thing.values():
            yield from pod_specs(value)
    elif isinstance(thing, list):
        for value in thing:
            yield from pod_specs(value)


def beside(objects: Sequence[Object], job: JobName) -> frozenset[str]:
    """Return which of ConfigMap and Secret of the job's name its pods use without the file having it."""
    named = {kind for one in objects for spec in pod_specs(one) for kind in _named(spec, job.name)}
    there = {one["kind"] for one in objects if one["metadata"]["name"] == job.name}
    return frozenset(named - there)


def _named(spec: Mapping[str, Any], name: str) -> Iterator[str]:
    for volume in spec.get("volumes") or ():
        if (volume.get("configMap") or {}).get("name") == name:
            yield "ConfigMap"
        if (volume.get("secret") or {}).get("secretName") == name:
            yield "Secret"
    for container in [*spec["containers"], *(spec.get("initContainers") or ())]:
        for source in container.get("envFrom") or ():
            for kind, key in {"ConfigMap": "configMapRef", "Secret": "secretRef"}.items():
                if (source.get(key) or {}).get("name") == name:
                    yield kind


def secret_of(job: JobName, *, token: str, submission: str) -> Object:
    """Return the Secret by which the launchers of one submission authenticate each other."""
    data = {"HOLDFAST_TOKEN": token, "HOLDFAST_SUBMISSION": submission}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": _metadata(job), "type": "Opaque", "stringData": data}


def files_of(job: JobName, files: Mapping[str, str]) -> Object:
    """Return the ConfigMap of the files (name -> text) beside the manifest. Raises: ManifestError: they do not fit."""
    bad = sorted(name for name in files if not _FILE_NAME.fullmatch(name))
    if bad:
        raise ManifestError(
            f"a ConfigMap cannot hold a file called {bad[0]!r}; allowed: letters, digits, '.', '_', '-'"
        )
    size = sum(len(text.encode()) for text in files.values())
    if size > MOST_FILES_BYTES:
        raise ManifestError(
            f"the files beside it have {size >> 10} KiB, and a ConfigMap holds {MOST_FILES_BYTES >> 10}; put the "
            "manifest into a folder of its own, data into the data bucket, and larger programs into an image"
        )
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _metadata(job), "data": dict(files)}


def _metadata(job: JobName) -> Object:
    return {
        "name": job.name,
        "namespace": job.namespace,
        "labels": {JOB_LABEL: job.name, MANAGED_BY: "holdfast"},
    }


@dataclass(frozen=True, kw_only=True)
class Resource:
    group_version: str
    plural: str
    namespaced: bool

    def path(self, *, namespace: str, name: str = "") -> str:
        root = f"/apis/{self.group_version}" if "/" in self.group_version else f"/api/{self.group_version}"
        where = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"{root}{where}/{self.plural}" + (f"/{name}" if name else "")


def resources_of(group_version: str, served: Iterable[Mapping[str, Any]]) -> dict[str, Resource]:
    """Return kinds from the ``resources`` of an APIResourceList, without subresources."""
    return {
        one["kind"]: Resource(group_version=group_version, plural=one["name"], namespaced=one["namespaced"])
        for one in served
        if "/" not in one["name"]
    }
