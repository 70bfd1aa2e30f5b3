"""6xx: data repository associations of Lustre file systems."""

from collections.abc import Iterator

from holdfast.catalog import bounds
from holdfast.validation.engine import Broken, refused, rule, show
from holdfast.validation.model import App, Deployment, LustreFileSystem
from holdfast.validation.rules.storage.lustre import FSX
from holdfast.validation.rules.storage.names import ASSOCIATION, FILE_SYSTEM
from holdfast.validation.rules.storage.volumes import has_plain_parts, overlap

MOST, AT_ONCE = bounds("data_repository_associations").most, 2


@rule(
    "HF617",
    title="Data repository associations are on a file system that supports them",
    each=LustreFileSystem,
    source=f"{FSX}, CreateDataRepositoryAssociation",
)
def support(lustre: LustreFileSystem, _: Deployment) -> Iterator[Broken]:
    """At most 8, not on SCRATCH_1, on Lustre 2.12 or newer."""
    associations = lustre.data_repository_associations
    if not associations:
        return
    if len(associations) > MOST:
        yield refused(
            lustre.at("data_repository_associations"),
            f"{len(associations)} data repository associations",
            allowed=f"at most {MOST}",
            fix="join some",
        )
    if lustre.deployment_type == "SCRATCH_1" or lustre.version == "2.10":
        yield refused(
            associations[0].path,
            f"a data repository association on {lustre.deployment_type} with Lustre {lustre.version or '2.10'}",
            allowed="associations on other types, with Lustre 2.12 or newer",
            fix="take PERSISTENT_2 and Lustre 2.15",
        )


@rule(
    "HF618",
    title="Folders of data repository associations do not overlap",
    each=(LustreFileSystem, App),
    source=f"{FSX}, FileSystemPath",
)
def folders(item: LustreFileSystem | App, _: Deployment) -> Iterator[Broken]:
    """
    Folders begin with a slash, and none lies in another; "/" is for a file system with one association. Assumed: FSx
    refuses a part that is empty, "." or "..", of which its pattern says nothing.
    """
    if isinstance(item, App):
        for folders_of_one in _of_existing(item).values():
            yield from _overlaps(folders_of_one)
        return
    for association in item.data_repository_associations:
        path = association.file_system_path
        if not path.startswith("/"):
            yield refused(association.at("file_system_path"), show(path), allowed="a path from /", fix=f"write /{path}")
        elif not has_plain_parts(path):
            yield refused(
                association.at("file_system_path"),
                show(path),
                allowed="a path without '//', '.' and '..'",
                fix=f"write {'/' + '/'.join(part for part in path.split('/') if part not in ('', '.', '..'))}",
            )
    yield from _overlaps(
        [(each.at("file_system_path"), each.file_system_path, each.name) for each in item.data_repository_associations]
    )


def _of_existing(app: App) -> dict[str, list[tuple[str, str, str]]]:
    """Place, folder and name of each association with a file system that is no resource of the app."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for association, node in app.each(ASSOCIATION):
        owner, folder = node.get("FileSystemId"), node.get("FileSystemPath").text()
        if owner.resource(FILE_SYSTEM) is None and isinstance(folder, str):
            place = f"{association.path}.FileSystemPath"
            found.setdefault(owner.token, []).append((place, folder, association.logical_id))
    return found


def _overlaps(folders: list[tuple[str, str, str]]) -> Iterator[Broken]:
    for index, (place, folder, _name) in enumerate(folders):
        for _place, other, name in folders[:index]:
            if overlap(folder, other):
                yield refused(
                    place,
                    show(folder),
                    allowed=f"what does not overlap with {other} of {name}",
                    fix="give one of them another folder",
                )


@rule(
    "HF619",
    title="S3 prefixes of data repository associations do not overlap",
    each=LustreFileSystem,
    source=f"{FSX}, DataRepositoryPath; CloudFormation",
)
def prefixes(lustre: LustreFileSystem, _: Deployment) -> Iterator[Broken]:
    """A prefix that two folders are associated with, or that lies in another's, makes every change arrive twice."""
    for index, association in enumerate(lustre.data_repository_associations):
        for other in lustre.data_repository_associations[:index]:
            if overlap(association.data_repository_path, other.data_repository_path):
                yield refused(
                    association.at("data_repository_path"),
                    show(association.data_repository_path),
                    allowed=f"what does not overlap with {other.data_repository_path} of {other.name}",
                    fix="give one of them another prefix",
                )


@rule("HF620", title="Data repository associations have different names", each=LustreFileSystem, source="Holdfast")
def names(lustre: LustreFileSystem, _: Deployment) -> Iterator[Broken]:
    """
    Names tell associations from each other when an environment file changes: without, the wrong one would be replaced.
    """
    seen = [association.name for association in lustre.data_repository_associations]
    for index, association in enumerate(lustre.data_repository_associations):
        if association.name in seen[:index]:
            yield refused(
                association.at("name"), f"{show(association.name)} again", allowed="each name once", fix="rename it"
            )


@rule(
    "HF624",
    severity="warning",
    title="Data repository associations are created one after the other",
    each=LustreFileSystem,
    source="aws-parallelcluster 6649",
)
def one_after_the_other(lustre: LustreFileSystem, _: Deployment) -> Iterator[Broken]:
    """
    A file system works on one association at a time, and the others wait. Two are made before CloudFormation gives up;
    more of them time out.
    """
    if len(lustre.data_repository_associations) > AT_ONCE and not all(
        association.waits_for_others for association in lustre.data_repository_associations
    ):
        yield Broken(
            path=lustre.data_repository_associations[-1].path,
            message="data repository associations that are created at once can time out",
            fix="let each depend on the one before it",
        )


@rule(
    "HF625",
    severity="warning",
    title="Preloaded folders have a data repository association",
    each=LustreFileSystem,
    source="Holdfast",
)
def preload(lustre: LustreFileSystem, _: Deployment) -> Iterator[Broken]:
    """
    Preloading fetches the contents of files that a data repository association has imported. Elsewhere there is nothing
    to fetch.
    """
    for folder in lustre.preload:
        if not any(
            overlap(folder, association.file_system_path) for association in lustre.data_repository_associations
        ):
            yield Broken(
                path=lustre.at("preload"),
                message=f"{folder} has no data repository association, so there is nothing to fetch",
                fix="name a folder of a dataset",
            )
