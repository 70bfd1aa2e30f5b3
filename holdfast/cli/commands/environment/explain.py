"""``holdfast explain``: what a finding means, an example and the fix."""

from typing import Annotated

import typer

from holdfast.cli.terminal import CommandError, print_line


def explain(
    code: Annotated[str | None, typer.Argument(metavar="CODE", help="Code of a finding, such as HF041.")] = None,
) -> None:
    """Explain a finding with an example; list all without a code."""
    from holdfast.cli.views.findings import as_plain_text
    from holdfast.validation import all_rules
    from holdfast.validation.pages import page

    rules = all_rules()
    if code is None:
        for each in sorted(rules):
            print_line(f"{each}  {rules[each].severity:11}  {rules[each].title}")
        return
    if code.upper() not in rules:
        raise CommandError(
            f"got {code!r}; allowed: one of {len(rules)} codes from {min(rules)} to {max(rules)}; "
            "list them with holdfast explain"
        )
    print_line(as_plain_text(page(code.upper())))
