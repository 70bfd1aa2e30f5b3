"""Templates judged without cfn-lint, which takes nine tenths of the time of a synthesis or a check."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from holdfast.validation.cfn_lint import Linted


@contextmanager
def unlinted() -> Iterator[None]:
    """Holdfast's rules alone, also in the validation of the CDK."""

    def nothing(*_: Any, **__: Any) -> Linted:
        return Linted(findings=[])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("holdfast.validation.from_template.report.lint", nothing)
        yield
