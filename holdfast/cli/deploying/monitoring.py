"""Prometheus and Alertmanager beside the nodes of a local cloud, for ``holdfast up --monitor``."""

from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.cli.deploying.stages import Stage
from holdfast.cli.terminal import CommandError, console, step
from holdfast.localcloud import LocalCloud, processes
from holdfast.localcloud.monitor import MonitorError, check_rules

if TYPE_CHECKING:
    from holdfast.config import Environment


def check_monitor(rules: Path, definition: "Environment") -> None:
    """Check before a deployment. Raises: CommandError: nothing to scrape, or invalid rules."""
    if definition.cloud != "embedded":
        raise CommandError(
            f"--monitor scrapes nodes of this machine, and {definition.name} is on AWS; leave it out, and set "
            "observability.prometheus, whose workspace evaluates the same rules"
        )
    if not definition.health.enabled or definition.health.metrics_port is None:
        raise CommandError(
            f"--monitor has nothing to scrape: agents of {definition.name} serve no metrics; "
            "set health.metrics_port, such as 9464, and leave health.enabled true"
        )
    try:
        check_rules(rules)
    except MonitorError as error:
        raise CommandError(str(error)) from None


def start_monitor(rules: Path, definition: "Environment", *, local: LocalCloud) -> None:
    with step(Stage.MONITOR) as progress:
        access = processes.start_monitor(local.home, rules=rules, cluster=definition.cluster_name)
        progress.update(f"{access.prometheus}, {access.alertmanager}")
    where = local.home / "monitor" / "access.json"
    console.print(f"alerts: {access.prometheus}/alerts, user {access.user}, password in {where}", markup=False)
