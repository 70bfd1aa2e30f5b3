"""6xx: volumes and mounts of instance groups."""

import re
from collections.abc import Iterator

from holdfast.catalog import bounds, limits
from holdfast.validation.engine import Broken, refused, rule, show
from holdfast.validation.model import Deployment, EnvironmentFile, Group, InstanceGroup, Mount, Volume

EBS = "SageMaker API reference, ClusterEbsVolumeConfig"
REFERENCES = "SageMaker developer guide, 'SageMaker HyperPod references'"
KMS = "KMS developer guide, 'Multi-Region keys': a key is of one region, and so is each replica"
SIZE_GIB, MOST_STORAGE_CONFIGS = bounds("volume_gib"), 4
MOUNT_PATH = re.compile(r"/[a-zA-Z0-9._/-]+")


@rule("HF601", title=f"Volumes have {SIZE_GIB} GiB", each=Volume, source=EBS)
def size_of_volume(volume: Volume, _: Deployment) -> Iterator[Broken]:
    """An extra volume needs a size. It is mounted at /opt/sagemaker."""
    if volume.root:
        return
    if volume.size_gib is None or not SIZE_GIB.has(volume.size_gib):
        given = "no size" if volume.size_gib is None else f"{volume.size_gib} GiB"
        yield refused(volume.at("size_gib"), given, allowed=f"{SIZE_GIB} GiB", fix="write 500")


@rule("HF602", title="A root volume has a KMS key only, and no size", each=Volume, source=EBS)
def root_volume(volume: Volume, _: Deployment) -> Iterator[Broken]:
    """The only setting of the root volume is the customer managed key that encrypts it."""
    if volume.root and (volume.size_gib is not None or not volume.kms_key):
        yield refused(
            volume.path,
            "a root volume with a size" if volume.size_gib is not None else "a root volume without a key",
            allowed="a key and no size",
            fix="remove the size" if volume.size_gib is not None else "add the key",
        )


@rule("HF630", title="KMS keys of volumes are in the region", each=Volume, source=KMS)
def region_of_volume_key(volume: Volume, deployment: Deployment) -> Iterator[Broken]:
    """A key encrypts in its own region only. With a key of another one no node gets its volume."""
    yield from _elsewhere(volume.at("kms_key"), volume.kms_key, deployment)


@rule("HF631", title="The environment's KMS key is in its region", each=EnvironmentFile, source=KMS)
def region_of_key(file: EnvironmentFile, deployment: Deployment) -> Iterator[Broken]:
    """File systems, buckets and logs are in the region of the environment, and so is the key that encrypts them."""
    yield from _elsewhere(file.at("kms_key"), file.kms_key, deployment)


@rule(
    "HF603",
    title="A group has at most 4 storage configurations, one of each kind",
    each=Group,
    source=f"SageMaker API reference, InstanceStorageConfigs; {REFERENCES}",
)
def storage_configs(group: Group, _: Deployment) -> Iterator[Broken]:
    """A root volume, an extra volume, a Lustre file system and an OpenZFS file system."""
    mounts = group.mounts if isinstance(group, InstanceGroup) else ()
    kinds = ["root volume" if volume.root else "extra volume" for volume in group.volumes]
    kinds += [mount.kind for mount in mounts]
    twice = sorted({kind for kind in kinds if kinds.count(kind) > 1})
    if twice or len(kinds) > MOST_STORAGE_CONFIGS:
        yield refused(
            group.at("volumes"),
            f"more than one of {', '.join(twice)}",
            allowed="one root volume, one extra volume, one Lustre and one OpenZFS file system",
            fix="keep one of each",
        )


@rule(
    "HF604",
    title="Mount paths are absolute and the API takes them",
    each=Mount,
    source="SageMaker API reference, ClusterFsxMountPath",
)
def mount_path(mount: Mount, _: Deployment) -> Iterator[Broken]:
    """Letters, digits, dots, hyphens, underscores and slashes after the first slash."""
    path = mount.mount_path
    if path is not None and (not MOUNT_PATH.fullmatch(path) or ".." in path.split("/")):
        yield refused(mount.at("mount_path"), show(path), allowed="an absolute path", fix="write /fsx")


@rule(
    "HF605",
    title="Mount paths of a group differ",
    each=InstanceGroup,
    source="SageMaker API reference: duplicates are refused",
)
def mount_paths_differ(group: InstanceGroup, _: Deployment) -> Iterator[Broken]:
    """One inside another hides what was mounted there first, in an undefined order."""
    seen: list[Mount] = []
    for mount in group.mounts:
        for other in seen:
            if mount.mount_path and other.mount_path and overlap(mount.mount_path, other.mount_path):
                yield refused(
                    mount.at("mount_path"),
                    show(mount.mount_path),
                    allowed=f"a path outside {other.mount_path}, where another file system is",
                    fix="give one of them another path",
                )
        seen.append(mount)


@rule(
    "HF606",
    title="No file system is mounted over a folder of the operating system",
    each=Mount,
    source="Filesystem Hierarchy Standard 3.0",
)
def system_paths(mount: Mount, _: Deployment) -> Iterator[Broken]:
    """
    A file system over /usr or /etc takes the node's software away; the node fails or cannot be reached. Folders below
    those, and below HyperPod's own such as /opt/ml, belong to the image too.
    """
    path = (mount.mount_path or "").rstrip("/")
    below = next((tree for tree in limits("system_trees") if path.startswith(f"{tree}/")), "")
    if mount.mount_path is not None and (below or path in ("", *limits("system_paths"))):
        yield refused(
            mount.at("mount_path"),
            f"{show(mount.mount_path)}, where the node's image has files" + (f" in {below}" if below else ""),
            allowed="a path of its own",
            fix=f"write {'/fsx' if mount.kind == 'lustre' else '/home'}",
        )


def _elsewhere(path: str, key: str | None, deployment: Deployment) -> Iterator[Broken]:
    parts = (key or "").split(":")
    region = deployment.region
    if parts[0] == "arn" and len(parts) > 4 and region is not None and parts[3] != region:
        yield refused(path, f"a key of region {parts[3]}", allowed=f"one of {region}", fix="name a key of the region")


def overlap(one: str, other: str) -> bool:
    a, b = one.rstrip("/") + "/", other.rstrip("/") + "/"
    return a.startswith(b) or b.startswith(a)


def has_plain_parts(path: str) -> bool:
    """True if no part is empty, ``.`` or ``..``; a trailing slash makes no part."""
    inner = path.removeprefix("/").removesuffix("/")
    return not inner or not {"", ".", ".."} & set(inner.split("/"))
