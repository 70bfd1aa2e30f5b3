"""6xx: links of Lustre file systems with S3."""

from collections.abc import Iterator

from holdfast.catalog import bounds
from holdfast.validation.engine import Broken, refused, rule, said
from holdfast.validation.model import Deployment, LustreFileSystem
from holdfast.validation.rules.storage.lustre import FSX
from holdfast.validation.rules.storage.volumes import has_plain_parts, overlap

MOST_LINKS, AT_ONCE = bounds("lustre_links").most, 2


@rule(
    "HF617",
    title="Data repository associations are on a file system that supports them",
    each=LustreFileSystem,
    source=f"{FSX}, CreateDataRepositoryAssociation",
)
def links_are_possible(lustre: LustreFileSystem, _: Deployment) -> Iterator[Broken]:
    """
    At most 8, not on SCRATCH_1, on Lustre 2.12 or newer.
    """
    links = lustre.data_repositories
    if not links:
        return
    if len(links) > MOST_LINKS:
        yield refused(
            lustre.at("data_repositories"), f"{len(links)} links", allowed=f"at most {MOST_LINKS}", fix="join some"
        )
    if lustre.deployment_type == "SCRATCH_1" or lustre.version == "2.10":
        yield refused(
            links[0].path,
            f"a link on {lustre.deployment_type} with Lustre {lustre.version or '2.10'}",
            allowed="links on other types, with Lustre 2.12 or newer",
            fix="take PERSISTENT_2 and Lustre 2.15",
        )


@rule(
    "HF618",
    title="Folders of data repository associations do not overlap",
    each=LustreFileSystem,
    source=f"{FSX}, FileSystemPath",
)
def link_folders(lustre: LustreFileSystem, _: Deployment) -> Iterator[Broken]:
    """
    Folders begin with a slash, and none lies in another; "/" is for a file system with one link. Assumed: FSx refuses
    a part that is empty, "." or "..", of which its pattern says nothing.
    """
    for index, link in enumerate(lustre.data_repositories):
        path = link.file_system_path
        if not path.startswith("/"):
            yield refused(link.at("file_system_path"), said(path), allowed="a path from /", fix=f"write /{path}")
        elif not has_plain_parts(path):
            yield refused(
                link.at("file_system_path"),
                said(path),
                allowed="a path without '//', '.' and '..'",
                fix="write the path of the folder itself, such as /data",
            )
        for other in lustre.data_repositories[:index]:
            if overlap(path, other.file_system_path):
                yield refused(
                    link.at("file_system_path"),
                    said(path),
                    allowed=f"what does not overlap with {other.file_system_path} of {other.name}",
                    fix="give one of them another folder",
                )


@rule(
    "HF619",
    title="S3 prefixes of data repository associations do not overlap",
    each=LustreFileSystem,
    source=f"{FSX}, DataRepositoryPath; CloudFormation",
)
def link_prefixes(lustre: LustreFileSystem, _: Deployment) -> Iterator[Broken]:
    """
    A prefix that two folders are linked with, or that lies in another's, makes every change arrive twice.
    """
    for index, link in enumerate(lustre.data_repositories):
        for other in lustre.data_repositories[:index]:
            if overlap(link.repository_path, other.repository_path):
                yield refused(
                    link.at("repository_path"),
                    said(link.repository_path),
                    allowed=f"what does not overlap with {other.repository_path} of {other.name}",
                    fix="give one of them another prefix",
                )


@rule("HF620", title="Data repository associations have different names", each=LustreFileSystem, source="Holdfast")
def link_names(lustre: LustreFileSystem, _: Deployment) -> Iterator[Broken]:
    """
    They tell links from each other when a file changes: without, the wrong one would be replaced.
    """
    names = [link.name for link in lustre.data_repositories]
    for index, link in enumerate(lustre.data_repositories):
        if link.name in names[:index]:
            yield refused(link.at("name"), f"{said(link.name)} again", allowed="each name once", fix="rename it")


@rule(
    "HF624",
    severity="warning",
    title="Data repository associations are created one after the other",
    each=LustreFileSystem,
    source="aws-parallelcluster 6649",
)
def serial_links(lustre: LustreFileSystem, _: Deployment) -> Iterator[Broken]:
    """
    A file system works on one association at a time, and the others wait. Two are made before CloudFormation gives up;
    more of them time out.
    """
    if len(lustre.data_repositories) > AT_ONCE and not all(link.waits_for_others for link in lustre.data_repositories):
        yield Broken(
            path=lustre.data_repositories[-1].path,
            message="links to S3 that are made at once can time out",
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
    Preloading fetches the contents of files that a link has brought in. Elsewhere there is nothing to fetch.
    """
    for folder in lustre.preload:
        if not any(overlap(folder, link.file_system_path) for link in lustre.data_repositories):
            yield Broken(
                path=lustre.at("preload"),
                message=f"{folder} is not linked with S3, so there is nothing to fetch",
                fix="name a folder of a dataset",
            )
