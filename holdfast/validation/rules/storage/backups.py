"""6xx: backups, and times of backups and maintenance."""

import re
from collections.abc import Iterator

from holdfast.validation.engine import Broken, refused, rule, show
from holdfast.validation.model import App, Deployment, references_in
from holdfast.validation.rules.storage.names import ASSOCIATION, FILE_SYSTEM

BACKUPS = "FSx for Lustre user guide, 'Protecting your data with backups'"
_CLOCK = r"([01]\d|2[0-3]):[0-5]\d"


@rule("HF650", title="File systems with data repository associations have no backups", each=App, source=BACKUPS)
def backups_of_linked(app: App, _: Deployment) -> Iterator[Broken]:
    """
    "Backups are supported only on FSx for Lustre persistent file systems that are not linked to an Amazon S3 data
    repository." Neither automatic ones, nor those of AWS Backup.
    """
    backed_up = {
        each.resource
        for _selection, node in app.each("AWS::Backup::BackupSelection")
        for each in references_in(node.get("BackupSelection", "Resources").value)
    }
    for file_system, node in app.each(FILE_SYSTEM):
        lustre = node.get("LustreConfiguration")
        days = lustre.get("AutomaticBackupRetentionDays").integer()
        scratch = str(lustre.get("DeploymentType").text() or "SCRATCH_1").startswith("SCRATCH") and lustre.present
        linked = [
            each.logical_id
            for each, own in app.each(ASSOCIATION)
            if own.get("FileSystemId").resource(FILE_SYSTEM) is file_system
        ]
        linked = linked or ["ImportPath"] * lustre.get("ImportPath").known
        if isinstance(days, int) and days > 0 and (linked or scratch):
            what = f"linked to an S3 data repository ({', '.join(linked)})" if linked else "of a scratch type"
            yield refused(
                f"{lustre.path}.AutomaticBackupRetentionDays",
                f"{days} days of backups of a file system {what}",
                allowed="no backups of it",
                fix="set AutomaticBackupRetentionDays to 0, or remove it",
            )
        if file_system in backed_up and (linked or scratch):
            yield refused(
                file_system.path,
                f"{file_system.logical_id}, scratch or linked to an S3 data repository, in a plan of AWS Backup",
                allowed="file systems without a data repository in a plan",
                fix="take it out of the BackupSelection; its data are in S3",
            )
        for name in ("DailyAutomaticBackupStartTime", "CopyTagsToBackups"):
            if lustre.get(name).known and scratch and lustre.get(name).value is not False:
                yield refused(
                    f"{lustre.path}.{name}",
                    f"{name} on a scratch file system",
                    allowed="persistent types",
                    fix=f"remove {name}",
                )


@rule(
    "HF657",
    title="Backup and maintenance times have the form that FSx and RDS accept",
    each=App,
    source="FSx API reference, DailyTime and WeeklyTime; RDS API reference, CreateDBInstance",
)
def windows(app: App, _: Deployment) -> Iterator[Broken]:
    """
    FSx takes HH:MM for backups and d:HH:MM, from 1 for Monday, for maintenance. It keeps backups for 90 days at most,
    RDS for 35. Backups and maintenance of a database are not at the same time.
    """
    for file_system, node in app.each(FILE_SYSTEM):
        for kind in ("LustreConfiguration", "OpenZFSConfiguration", "OntapConfiguration", "WindowsConfiguration"):
            held = node.get(kind)
            for name, form, allowed in (
                ("DailyAutomaticBackupStartTime", _CLOCK, "HH:MM in UTC"),
                ("WeeklyMaintenanceStartTime", f"[1-7]:{_CLOCK}", "d:HH:MM in UTC, 1 for Monday"),
            ):
                value = held.get(name)
                if isinstance(value.value, str) and not re.fullmatch(form, value.value):
                    yield refused(
                        value.path,
                        show(value.value),
                        allowed=allowed,
                        fix=f"write {'6:03:00' if 'd:' in allowed else '03:00'}",
                    )
            days = held.get("AutomaticBackupRetentionDays").integer()
            if isinstance(days, int) and not 0 <= days <= 90:
                yield refused(
                    f"{held.path}.AutomaticBackupRetentionDays",
                    f"{days} days",
                    allowed="0 to 90",
                    fix="write 90, and keep longer ones with AWS Backup",
                )
        if file_system.body.get("DeletionPolicy") == "Snapshot":
            yield refused(
                f"{file_system.path.removesuffix('.Properties')}.DeletionPolicy",
                "Snapshot on a file system of FSx",
                allowed="Retain, RetainExceptOnCreate or Delete; snapshots are for volumes and databases",
                fix="write Retain",
            )
    for database, node in app.each("AWS::RDS::DBInstance", "AWS::RDS::DBCluster"):
        days = node.get("BackupRetentionPeriod").integer()
        if isinstance(days, int) and not 0 <= days <= 35:
            yield refused(f"{database.path}.BackupRetentionPeriod", f"{days} days", allowed="0 to 35", fix="write 35")
        daily, weekly = (node.get(name).text() for name in ("PreferredBackupWindow", "PreferredMaintenanceWindow"))
        if isinstance(daily, str) and isinstance(weekly, str) and _overlap(daily, weekly):
            yield refused(
                f"{database.path}.PreferredBackupWindow",
                f"{daily}, during the maintenance of {weekly}",
                allowed="windows that do not overlap",
                fix="move one of them",
            )


def _overlap(daily: str, weekly: str) -> bool:
    times = [re.findall(r"(\d\d):(\d\d)", each) for each in (daily, weekly)]
    if any(len(each) != 2 for each in times):
        return False
    (start, end), (first, last) = [[int(h) * 60 + int(m) for h, m in each] for each in times]
    return start < (last if last > first else last + 1440) and first < (end if end > start else end + 1440)
