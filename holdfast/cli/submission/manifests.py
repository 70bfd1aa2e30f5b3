"""
Manifests for Kubernetes, applied as ``kubectl apply --server-side`` does.

Files of the folder become a ConfigMap, and what launchers of one submission share a Secret, both with the job's
name.
"""

import secrets
import time
from collections.abc import Sequence
from pathlib import Path

from holdfast.cli.deployed import Context, cancel_workloads, record_event, sign_in, workload
from holdfast.cli.kubernetes import (
    JobName,
    ManifestError,
    Object,
    Resource,
    Rights,
    beside,
    files_of,
    is_defined,
    job_of,
    parse_manifests,
    pod_specs,
    resources_of,
    secret_of,
    unserved,
)
from holdfast.cli.submission.archives import is_lfs_pointer, read_entry
from holdfast.cli.submission.folders import Entry, JobFolder, read_folder
from holdfast.cli.submission.plain_files import read_plain
from holdfast.cli.submission.remarks import left_out_line, pointer_line, tell
from holdfast.cli.terminal import CommandError, step
from holdfast_common import KubernetesClient, KubernetesError, closest_word, kinds

SUFFIXES = (".yaml", ".yml", ".json")
GONE_WITHIN_S = 60.0
POLL_S = 0.2


def is_manifest(file: Path) -> bool:
    return file.suffix in SUFFIXES


def read_manifests(file: Path) -> list[Object]:
    """Parse a file. Raises: CommandError: it holds no job for Kubernetes."""
    try:
        found = parse_manifests(read_plain(file).decode())
        job_of(found)
    except (ManifestError, UnicodeDecodeError) as error:
        raise CommandError(f"{file} cannot be submitted: {error}") from None
    return found


def check_fits(file: Path, *, orchestrator: str) -> None:
    """Refuse a file for the other orchestrator. Raises: CommandError: the file is for the other one."""
    if is_manifest(file) == (orchestrator == "eks"):
        return
    has, takes = ("Slurm", "job files of sbatch") if is_manifest(file) else ("Kubernetes", "manifests (.yaml)")
    raise CommandError(f"the cluster is under {has}, which takes {takes}; got {file}")


def submit_manifests(context: Context, *, file: Path, submission: str | None = None) -> str:
    """Apply the objects of a file in order, and return the job's name. Raises: CommandError: it runs, or is refused."""
    given = read_manifests(file)
    with step(f"submit {file.name}") as progress:
        job = job_of(given)
        client = sign_in(context).client
        version = _version(client)
        objects = [_for_version(one, version) for one in given]
        served = _ServedKinds(client, version)
        if context.session.cloud == "embedded":
            _check_served(client, objects, served)
        _make_room(context, job)
        own = beside(objects, job)
        made: list[Object] = []
        if "Secret" in own:
            made.append(
                secret_of(
                    job, token=secrets.token_hex(32), submission=submission or f"{job.name}-{secrets.token_hex(4)}"
                )
            )
        if "ConfigMap" in own:
            made.append(_files(job, file.parent.resolve(), always=file.name))
        elif submission is not None:
            raise CommandError(f"got --submission, and no pod of {file} takes its Secret {job.name}")
        _apply(client, [*made, *objects], served=served, version=version)
        progress.update(f"{len(objects)} objects of job {job}")
    record_event(context, kind=kinds.JOB_SUBMITTED, job=str(job))
    return str(job)


def _version(client: KubernetesClient) -> str:
    """Return the server's version, such as 1.20."""
    try:
        found = client.get("/version")
    except KubernetesError as error:
        raise CommandError(f"the cluster's version is not known: {error}", exit_code=1) from None
    return f"{found['major']}.{found['minor'].rstrip('+')}"


def _for_version(thing: Object, version: str) -> Object:
    from holdfast.localcloud.kubernetes.older_server import IndexedJobError, for_server

    what = f"{thing['kind']} {thing['metadata']['name']}"
    try:
        changed = for_server(thing, minor=int(version.partition(".")[2]))
    except IndexedJobError as error:
        raise CommandError(f"{what} was refused: {error}") from None
    if changed != thing:
        tell(f"{what}: adapted to Kubernetes {version}")
    return changed


def _make_room(context: Context, job: JobName) -> None:
    there = workload(context, job=str(job))
    if there is None:
        return
    if not there.has_ended:
        raise CommandError(f"job {job} is {there.state} already; end it with: holdfast cancel {job}")
    cancel_workloads(context, [there])
    deadline = time.monotonic() + GONE_WITHIN_S
    while workload(context, job=str(job)) is not None:
        if time.monotonic() > deadline:
            raise CommandError(f"the job {job} was not deleted within {GONE_WITHIN_S:g} s", exit_code=1)
        time.sleep(POLL_S)


def _files(job: JobName, folder: Path, *, always: str) -> Object:
    listed = read_folder(folder, always=always, is_flat=True)
    files = {entry.path: _text(listed, entry) for entry in listed.entries}
    pointers = [path for path, text in files.items() if is_lfs_pointer(text.encode())]
    for line in filter(None, (left_out_line(listed.left_out), *map(pointer_line, pointers))):
        tell(line)
    try:
        return files_of(job, files)
    except ManifestError as error:
        raise CommandError(f"{folder} cannot be uploaded: {error}") from None


def _text(folder: JobFolder, entry: Entry) -> str:
    try:
        return read_entry(folder, entry).decode()
    except UnicodeDecodeError:
        raise CommandError(
            f"{folder.root / entry.path} is not text, as a ConfigMap requires; list it in .holdfastignore"
        ) from None


class _ServedKinds:
    """Kinds of the cluster, each API version requested once."""

    def __init__(self, client: KubernetesClient, version: str) -> None:
        self._client = client
        self._allowed = f"allowed: kinds of Kubernetes {version}, such as Job, and of operators that are installed"
        self._versions: dict[str, dict[str, Resource]] = {}

    def resource(self, thing: Object) -> Resource:
        """Return the REST path of a kind. Raises: CommandError: the cluster does not serve it."""
        version, kind = thing["apiVersion"], thing["kind"]
        what = f"{kind} {thing['metadata']['name']}"
        if version not in self._versions:
            root = f"/apis/{version}" if "/" in version else f"/api/{version}"
            try:
                self._versions[version] = resources_of(version, self._client.get(root)["resources"])
            except KubernetesError as error:
                if error.code != 404:
                    raise CommandError(f"{what} was refused: {error}", exit_code=1) from None
                why = f"{what} was refused: this cluster has no {version}; {self._allowed}"
                raise CommandError(why, exit_code=1) from None
        found = self._versions[version].get(kind)
        if found is None:
            close = closest_word(kind, self._versions[version])
            why = f"this cluster has no {kind} in {version}; {self._allowed}"
            raise CommandError(f"{what} was refused: {why}{f'; did you mean {close}?' if close else ''}", exit_code=1)
        return found


_UNDECLARED = "not declared in schema"


def _check_served(client: KubernetesClient, objects: Sequence[Object], served: _ServedKinds) -> None:
    """Refuse kinds that do not exist or have no controller, before anything is applied. Raises: CommandError."""
    if any(one["kind"] == "CustomResourceDefinition" for one in objects):
        return
    rights = None
    for one in objects:
        resource = served.resource(one)
        if not is_defined(resource) or not any(pod_specs(one)):
            continue
        try:
            rights = rights or _rights(client)
        except KubernetesError:
            return  # whoever may not look is not kept from trying
        if (why := unserved(resource, rights)) is not None:
            raise CommandError(
                f"{one['kind']} {one['metadata']['name']} was refused: no controller serves {resource.plural} of "
                f"{resource.group_version} in this cluster, and it would never start: {why}; use a Job, or install "
                "the operator, whose images are added with: holdfast images add",
                exit_code=1,
            )


def _rights(client: KubernetesClient) -> Rights:
    root = "/apis/rbac.authorization.k8s.io/v1"
    return Rights(
        roles=(*client.items(f"{root}/clusterroles"), *client.items(f"{root}/roles")),
        bindings=(*client.items(f"{root}/clusterrolebindings"), *client.items(f"{root}/rolebindings")),
        pods=tuple(client.items("/api/v1/pods")),
    )


def _apply(client: KubernetesClient, objects: Sequence[Object], *, served: _ServedKinds, version: str) -> None:
    for one in objects:
        metadata = one["metadata"]
        resource = served.resource(one)
        namespace = metadata.get("namespace") or "default"
        body = {**one, "metadata": {**metadata, **({"namespace": namespace} if resource.namespaced else {})}}
        try:
            client.apply(resource.path(namespace=namespace, name=metadata["name"]), body)
        except KubernetesError as error:
            lacks = f"; this cluster runs Kubernetes {version}" if _UNDECLARED in str(error) else ""
            what = f"{one['kind']} {metadata['name']}"
            raise CommandError(f"{what} was refused: {error}{lacks}", exit_code=1) from None
