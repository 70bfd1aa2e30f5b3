"""0xx: the source itself. Most of these are found while a file is read."""

from collections.abc import Iterator

from holdfast.validation.engine import Broken, declare, refused, rule, show
from holdfast.validation.model import Deployment, EnvironmentFile

OURS = "Holdfast"

EMBEDDED_ACCOUNT = "123456789012"

declare(
    "HF001",
    title="The file can be read and is YAML",
    source=OURS,
    explanation="""
    An environment file is one YAML document in UTF-8 whose top is a mapping. Nothing else in it can be judged before
    that is so. For a template the same holds, in JSON too, and it has to have resources.
    """,
)
declare(
    "HF002",
    title="Every setting is known",
    source=OURS,
    explanation="""
    A setting that the environment file does not have is refused: a misspelt setting would otherwise be left out in
    silence, and its default would take its place.
    """,
)
declare(
    "HF003",
    title="Required settings are given",
    source=OURS,
    explanation="""
    A setting without a default has to be written.
    """,
)
declare(
    "HF004",
    title="Every value has the type of its setting",
    source=OURS,
    explanation="""
    Reading is strict: "4" and 4.0 are no count, yes is no truth value, and a word has to be one of those that
    the message lists. Values with a rule of their own, such as names, are reported under that rule's code.
    """,
)
declare(
    "HF005",
    title="A setting is written once, without YAML aliases or merge keys",
    source=OURS,
    explanation="""
    YAML lets a later key overwrite an earlier one in silence, and lets aliases and merge keys hide where a value
    comes from. All of them are refused. In a template a key that stands twice has "an undefined behavior"
    (CloudFormation user guide, template format).
    """,
)
declare(
    "HF006",
    title="A suppression names the code of a rule that exists",
    source=OURS,
    explanation="""
    A suppression of an unknown code suppresses nothing. It is usually a misspelling.
    """,
)
declare(
    "HF007",
    severity="warning",
    title="A suppression has a finding to suppress",
    source=OURS,
    explanation="""
    A suppression whose finding is gone would hide the next one of that code. Remove it.
    """,
)
declare(
    "HF008",
    title="Only findings that may be accepted are suppressed",
    source=OURS,
    explanation="""
    Warnings, and what could not be checked, can be accepted with a reason; so can the few errors whose page allows it,
    because the fact behind them moves or has exceptions. Anything else AWS refuses whether or not it is hidden here.
    """,
)
declare(
    "HF013",
    title="Every DECIDE comment of an import has been decided",
    source=OURS,
    explanation="""
    `holdfast import` writes a comment that begins with DECIDE above what it could not know. Until each is decided
    the file does not describe the imported cluster. Correct the setting and remove the comment.
    """,
)
declare(
    "HF020",
    title="A template is valid YAML or JSON of CloudFormation",
    source="CloudFormation user guide, template format, quotas",
    explanation="""
    CloudFormation takes YAML 1.1 without aliases, merge keys and the tags !!binary, !!omap, !!pairs, !!set and
    !!timestamp, and no short tag but those of its own functions. A template has at most 1 MB. What stands in it is
    judged by cfn-lint's rules.
    """,
)
declare(
    "HF021",
    title="No condition refers to itself",
    source="CloudFormation template reference, condition functions",
    explanation="""
    What a condition compares may lead to other conditions, but not back to itself. CloudFormation refuses the template
    otherwise.
    """,
)
declare(
    "HF022",
    severity="not-checked",
    title="Every part of a template could be read",
    source=OURS,
    explanation="""
    What macros, the SAM transform, `Fn::Transform` and nested stacks whose template is not beside this one bring about
    is not visible here, and is reported as not checked, once for each cause. So are parameters that conditions ask
    for, where they can be chosen in more ways than are judged, and what cfn-lint could not judge.
    """,
)
declare(
    "HF023",
    title="No resource depends on itself through others",
    source="CloudFormation user guide, 'Troubleshooting CloudFormation': circular dependency between resources",
    explanation="""
    Each reference and each `DependsOn` is an order. Two security groups that let each other in are the usual circle:
    write the rules as resources of their own.
    """,
)


@rule("HF009", title="An environment file has a slurm or an eks section, not both", each=EnvironmentFile, source=OURS)
def one_orchestrator_section(file: EnvironmentFile, _: Deployment) -> Iterator[Broken]:
    """
    A cluster is orchestrated by Slurm or by EKS. A file with both sections leaves it open which one is meant; without
    either the cluster has Slurm with its defaults.
    """
    if len(file.orchestrators) > 1:
        yield refused(
            file.at("orchestrators"), "slurm and eks", allowed="one of them", fix="remove the section that is not meant"
        )


@rule("HF010", title="The network is either a new VPC or an existing one", each=EnvironmentFile, source=OURS)
def new_or_existing_network(file: EnvironmentFile, _: Deployment) -> Iterator[Broken]:
    """
    `network.cidr` asks for a VPC to be made, `network.existing` names one that is there. Exactly one of them has to be
    written.
    """
    if file.new_network == file.existing_network:
        both = file.new_network
        yield refused(
            file.at("new_network"),
            "both cidr and existing" if both else "neither cidr nor existing",
            allowed="one of them",
            fix="remove cidr, or existing" if both else "add cidr: 10.1.0.0/16",
        )


@rule(
    "HF011",
    title="An environment of the embedded AWS has the embedded account's number",
    each=EnvironmentFile,
    source=OURS,
)
def embedded_account(file: EnvironmentFile, deployment: Deployment) -> Iterator[Broken]:
    """
    The embedded AWS has one account, 123456789012. With another number in the file the CDK would look for credentials
    of that account.
    """
    if file.cloud == "embedded" and deployment.account != EMBEDDED_ACCOUNT:
        yield refused(
            deployment.at("account"),
            show(deployment.account),
            allowed=f"{EMBEDDED_ACCOUNT}, the account of the embedded AWS",
            fix=f'write account: "{EMBEDDED_ACCOUNT}"',
        )


@rule("HF012", title="Stand-ins are used on the embedded AWS only", each=EnvironmentFile, source=OURS)
def stand_ins_are_embedded(file: EnvironmentFile, _: Deployment) -> Iterator[Broken]:
    """`stand_ins` replaces what this machine lacks. On AWS there are no stand-ins."""
    if file.cloud == "aws" and file.stand_ins:
        yield refused(
            file.at("stand_ins"),
            show(dict(file.stand_ins)),
            allowed="nothing, when cloud is aws",
            fix="remove stand_ins, or set cloud: embedded",
        )
