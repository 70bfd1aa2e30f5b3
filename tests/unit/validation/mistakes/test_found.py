"""
How many of the mistakes in tests/cases/mistakes the checks find: what was reached is held, by subject.

A sample of each subject is checked in ``make test``, for all of them take half a minute; ``make e2e`` checks all. A
failure names what is missed.
"""

from collections.abc import Sequence

import pytest
from mistakes import Entry, clean_files, found, load, said_of_clean

NOT_FOUND = {
    "cfn-address-before-the-gateway-is-attached",  # the NAT gateway that has it waits for the route
    "cfn-cluster-before-rules-of-its-group",  # the file system that it mounts waits for them
    "cfn-nat-gateway-before-its-route",  # the address that it has waits for the attachment
}
"""Mistakes that are none by the order in which CloudFormation makes things."""
EVERY = 8
"""One of so many is checked in ``make test``."""


def entries(subject: str) -> Sequence[Entry]:
    return [one for one in load() if one.subject == subject]


SUBJECTS = sorted({one.subject for one in load()})


@pytest.mark.parametrize("every", [EVERY, pytest.param(1, marks=pytest.mark.e2e)])
@pytest.mark.parametrize("subject", SUBJECTS)
def test_most_mistakes_of_a_subject_are_found(subject: str, every: int) -> None:
    sample = [one for one in entries(subject) if one.mistake.id not in NOT_FOUND][::every]

    missed = [one.mistake.id for one in sample if not found(one.mistake)]

    assert len(missed) <= len(sample) // 10, missed


@pytest.mark.parametrize("path", clean_files(), ids=lambda path: path.name)
def test_nothing_is_said_of_a_file_that_is_right(path) -> None:  # type: ignore[no-untyped-def]
    assert said_of_clean(path) == frozenset()
