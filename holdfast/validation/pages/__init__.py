"""Generator of docs/findings from rules and examples."""

from holdfast.validation.pages.examples import EXAMPLES, Example, changed, example, findings_of
from holdfast.validation.pages.findings import PAGES, pages, write

__all__ = ["EXAMPLES", "PAGES", "Example", "changed", "example", "findings_of", "pages", "write"]
