"""The pages of findings, from the rules and their examples."""

from holdfast.validation.pages.examples import EXAMPLES, Example, changed, example, findings_of
from holdfast.validation.pages.findings import page, pages

__all__ = ["EXAMPLES", "Example", "changed", "example", "findings_of", "page", "pages"]
