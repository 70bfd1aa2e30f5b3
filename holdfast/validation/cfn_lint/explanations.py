"""Rules of cfn-lint as ours are described."""

from holdfast.validation.engine import Rule

_SUPPRESSION = """\
This code is cfn-lint's own. To accept it, name it in the template, at the top for all resources or in one resource:

```yaml
Metadata:
  cfn-lint: {config: {ignore_checks: [CODE]}}
```
"""


def linted_rule(code: str) -> Rule | None:
    """Rule of a code of cfn-lint; None for an unknown one. Takes a second: it imports the engine."""
    from cfnlint.version import __version__

    from holdfast.validation.cfn_lint.engine import rules

    found = rules().get(code)
    if found is None or found.severity == "informational":
        return None
    return Rule(
        code=code,
        severity="error" if found.severity == "error" else "warning",
        title=found.shortdesc,
        source=f"cfn-lint {__version__}, {found.source_url or 'https://github.com/aws-cloudformation/cfn-lint'}",
        suppressible=True,
        explanation=f"{' '.join(found.description.split())}\n\n{_SUPPRESSION.replace('CODE', code)}",
    )
