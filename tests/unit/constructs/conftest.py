"""What the tests of constructs share: Holdfast's rules judge each synthesis, and cfn-lint where a test is about it."""

from collections.abc import Iterator

import pytest
from unlinted import unlinted


@pytest.fixture(scope="module", autouse=True)
def without_cfn_lint() -> Iterator[None]:
    """The snapshot tests judge the template of each environment with it."""
    with unlinted():
        yield
