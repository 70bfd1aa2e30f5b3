"""Files and events of a plan. The planner is slow to load."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from holdfast.cli.definitions import read_definition
from holdfast.cli.deployed import environments, locate, stored, stored_events
from holdfast.cli.terminal import CommandError
from holdfast.environments import environment_file
from holdfast.localcloud import from_environment

if TYPE_CHECKING:
    from holdfast.cli.planning.inputs import Data
    from holdfast.config import Environment
    from holdfast_common import Event, StoredEvents

T = TypeVar("T")


def data_from(*, rates_file: Path | None, stages_file: Path | None, prices_file: Path | None) -> "Data":
    """Rates, stages and prices of these files, each read on demand. Default: the catalog."""
    from holdfast.catalog.goodput import failure_rates, prices, recovery_stages
    from holdfast.cli.planning.inputs import Data

    return Data(
        rates=partial(_read, "--rates-file", failure_rates, rates_file),
        stages=partial(_read, "--stages-file", recovery_stages, stages_file),
        prices=partial(_read, "--prices-file", prices, prices_file),
    )


def _read(option: str, reader: Callable[[Path | None], T], path: Path | None) -> T:
    try:
        return reader(path)
    except (OSError, ValueError) as error:
        raise CommandError(f"{option} {path}: {error}") from None


def learned(
    path: Path | None, *, environment: str | None, actual: bool
) -> "tuple[StoredEvents | None, Environment | None]":
    """Events to learn from, and environment. Raises: CommandError: none, or another's. NoSuchEnvironmentError."""
    if path is not None and actual:
        raise CommandError("got --events and --actual; allowed: one of them")
    if actual:
        return _deployed(environment)
    events = None if path is None else events_of(path)
    return events, None if environment is None else read_definition(environment_file(environment))


def _deployed(environment: str | None) -> "tuple[StoredEvents, Environment]":
    definition = None if environment is None else read_definition(environment_file(environment))
    has_session = definition is not None and definition.name in environments(from_environment().home)
    context = locate(environment=definition.name if definition is not None and has_session else None)
    deployed = context.session.environment
    if definition is not None and definition.name != deployed:
        raise CommandError(
            f"--actual reads the events of '{deployed}', which is deployed, and the plan is of '{definition.name}'; "
            f"plan the one that is deployed (holdfast plan {deployed} --actual), "
            f"or give the events of the other one with --events"
        )
    found = stored_events(context)
    if not _has_any(found):
        raise CommandError(
            f"the event log of '{deployed}' holds no event (on AWS nothing ships them from the nodes yet); "
            f"give events with --events"
        )
    return found, definition or read_definition(environment_file(deployed))


def events_of(path: Path) -> "StoredEvents":
    """Events of a file; invalid lines are set aside. Raises: CommandError: unreadable, or without events."""
    from holdfast_common import StoredEvents

    try:
        file = path.open("rb")
        if file.seekable():
            found = StoredEvents(file)
        else:
            with file:
                found = stored(file)
    except OSError as error:
        raise CommandError(f"--events {path} cannot be read: {error}") from None
    if not _has_any(found):
        first = f" (the first line that is none: {found.problems.first})" if found.problems else ""
        raise CommandError(
            f"--events {path} holds no event; it needs JSON lines, such as: holdfast events --json{first}"
        )
    return found


def _has_any(events: "Iterable[Event]") -> bool:
    return next(iter(events), None) is not None
