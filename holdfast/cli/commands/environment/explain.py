"""``holdfast explain``: findings with an example and the fix, and faults as health agents judge them."""

import re
from typing import Annotated

import typer

from holdfast.cli.terminal import CommandError, print_line

_OF_CFN_LINT = re.compile(r"[EW]\d{4}")


def explain(
    code: Annotated[
        str | None,
        typer.Argument(metavar="CODE", help="Code of a finding: HF041, E3012; a fault, such as gpu-lost; or xid-79."),
    ] = None,
) -> None:
    """Explain a finding or a fault; list all findings without a code."""
    from holdfast.cli.findings import as_plain_text
    from holdfast.cli.views import explained
    from holdfast.validation import all_rules
    from holdfast.validation.cfn_lint import LEFT_OUT, linted_rule
    from holdfast.validation.pages import page

    rules = all_rules()
    if code is None:
        for each in sorted(rules):
            print_line(f"{each}  {rules[each].severity:11}  {rules[each].title}")
        return
    if lines := explained(code.lower()):
        print_line("\n".join(lines))
        return
    asked = code.upper()
    if asked in LEFT_OUT:
        print_line(f"{asked}: a code of cfn-lint that is not reported: {LEFT_OUT[asked]}")
    elif asked in rules or (_OF_CFN_LINT.fullmatch(asked) and linted_rule(asked)):
        print_line(as_plain_text(page(asked)))
    else:
        raise CommandError(
            f"got {code!r}; allowed: one of {len(rules)} codes from {min(rules)} to {max(rules)}, an E or W code of "
            "cfn-lint, a fault as holdfast incidents prints it, or xid-N; list them with holdfast explain"
        )
