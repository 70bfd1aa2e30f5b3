from holdfast.updates.changes import POLICIES
from holdfast.updates.policies import MEANINGS, Case, Effect, Policy

_INTRO = """\
# What a change does

Every setting of the [environment file](environment.md) has an update policy: what changing it does to what is deployed.

    holdfast diff local      # environments/local.yaml against its stack

prints the settings that differ, worst first, each with the reason and what to do about it.
It exits with 0 when the file can be deployed, with 1 when a change is refused or replaces something that the file
does not allow to be replaced, and with 2 when there is nothing to compare with.

What is deployed is read from the stack itself: its template carries the environment it was made of, in its metadata.
A stack that was deployed before templates did so cannot be compared until a resource of it is changed: CloudFormation
does not update a template's metadata alone. For the same reason a change that AWS does not see can show up again.

Settings are compared by their paths, and groups, datasets, users and priority classes by their names.
A renamed one is one removed and another one added.

## Allowing a replacement

Deploying stops before it begins when a change would replace the cluster, an instance group or a file system, unless
the file names the change:

```yaml
allow_replacement:
  - cluster.name
  - cluster.instance_groups.evaluation    # the group may go, with its nodes
```

What AWS refuses cannot be allowed. An entry that allows nothing any more is reported, so that it is taken out again.

## Effects, worst first

| effect | meaning | deployed |
|---|---|---|
{effects}
## Policies

The first row of a setting that fits decides; the row without a condition is for all other changes of it.

| setting | when | effect | reason | what to do | source |
|---|---|---|---|---|---|
{policies}"""


def updates_text() -> str:
    effects = "".join(f"| {effect.words} | {MEANINGS[effect]} | {_deployed(effect)} |\n" for effect in reversed(Effect))
    return _INTRO.format(effects=effects, policies="".join(map(_rows, POLICIES)))


def _deployed(effect: Effect) -> str:
    if effect is Effect.REFUSED:
        return "never"
    return "when allowed" if effect.needs_leave else "yes"


def _rows(policy: Policy) -> str:
    names = "<br>".join(f"`{setting}`" for setting in policy.settings)
    rows = [
        _row(names if index == 0 else "", case.when, case, policy.source) for index, case in enumerate(policy.cases)
    ]
    rows.append(_row("" if policy.cases else names, "otherwise" if policy.cases else "", policy, policy.source))
    return "".join(rows)


def _row(names: str, when: str, verdict: Case | Policy, source: str) -> str:
    cells = (names, when, verdict.effect.words, verdict.reason, verdict.action, source)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"
