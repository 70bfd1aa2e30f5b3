"""Inputs and output of a page that is one file."""

from collections.abc import Callable
from pathlib import Path

from holdfast.cli.console.feed import ClusterSource
from holdfast.cli.console.running import fleet_of
from holdfast.cli.deployed import AwsError, Context, stored_events
from holdfast.cli.terminal import CommandError, console
from holdfast.cli.views.incidents import Fleet, Price
from holdfast.cli.views.pages import is_page
from holdfast_common import StoredEvents, events_log_group


def cluster_fleet(context: Context, *, price: str) -> Fleet:
    """Instance types of a cluster, and their prices. Raises: CommandError: unknown price."""
    of_price = Price.of(price, region=context.session.region)
    cluster = ClusterSource(context).cluster()
    return Fleet(price=of_price) if cluster is None else fleet_of(cluster, price=of_price)


def cluster_log(context: Context) -> StoredEvents:
    """Store the event log of a cluster. Raises: CommandError: there is none, or it cannot be stored."""
    try:
        return stored_events(context)
    except AwsError as error:
        if error.code != "ResourceNotFoundException":
            raise
        group = events_log_group(context.session.cluster_name)
        raise CommandError(
            f"there is no log group {group} in {context.session.region}, so there are no incidents; "
            f"give events of a file with --events"
        ) from None


def write_page(path: Path, made: Callable[[], str], *, quiet: bool) -> None:
    """Write a page. Raises: CommandError: the file exists and is no such page, or cannot be written."""
    try:
        if path.exists() and path.stat().st_size and not is_page(path):
            raise CommandError(f"--html {path} exists and was not written by holdfast; give another path, or remove it")
        path.write_text(made(), encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise CommandError(f"--html {path} cannot be written: {error}") from None
    if not quiet:
        console.print(f"wrote {path}", style="dim")
