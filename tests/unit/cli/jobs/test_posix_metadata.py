"""POSIX metadata of S3 objects, as FSx for Lustre documents it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.localcloud.fsx import Posix, of_metadata, to_metadata


def test_the_example_of_the_documentation_is_understood() -> None:
    said = {
        "user-agent": "aws-fsx-lustre",
        "file-atime": "1595002920000000000ns",
        "file-owner": "500",
        "file-permissions": "0100664",
        "file-group": "500",
        "file-mtime": "1595002920000000000ns",
    }
    assert of_metadata(said) == Posix(mode=0o664, owner=500, group=500, mtime_ns=1595002920000000000)


def test_an_object_that_says_nothing_makes_a_file_that_all_may_run() -> None:
    assert of_metadata({}) == Posix(mode=0o755)


def test_a_time_without_unit_is_in_milliseconds() -> None:
    assert of_metadata({"file-mtime": "1595002920000"}).mtime_ns == 1595002920000000000


def test_nobody_gets_a_program_that_runs_as_its_owner() -> None:
    assert of_metadata({"file-permissions": "0106755"}).mode == 0o755
    assert to_metadata(mode=0o106755, mtime_ns=0)["file-permissions"] == "0100755"


@pytest.mark.parametrize("text", ["", "rwx", "-1", "0o755", "99999", "\u0667\u0665\u0665", "7" * 40])
def test_what_is_not_of_the_documented_form_counts_as_not_said(text: str) -> None:
    said = dict.fromkeys(("file-permissions", "file-mtime"), text) | {"file-owner": "-" + text}
    assert of_metadata(said) == Posix(mtime_ns=of_metadata({"file-mtime": text}).mtime_ns)


@given(mode=st.integers(0, 0o777), owner=st.integers(0, 2**31), mtime_ns=st.integers(0, 2**62))
def test_what_is_written_is_read_again(mode: int, owner: int, mtime_ns: int) -> None:
    said = to_metadata(mode=mode, owner=owner, group=owner, mtime_ns=mtime_ns)
    assert of_metadata(said) == Posix(mode=mode, owner=owner, group=owner, mtime_ns=mtime_ns)
