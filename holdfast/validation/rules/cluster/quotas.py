"""8xx: caches of images, alarms, budgets and events, as the pages of their services say."""

import json
from collections.abc import Iterator, Mapping

from holdfast.catalog import bounds
from holdfast.catalog.facts import page_fact
from holdfast.validation.cloudformation import Node, Reference
from holdfast.validation.engine import Broken, refused, rule, show
from holdfast.validation.model import App, Deployment, references_in, text_of
from holdfast_common import closest_word

MOST_POLICIES = bounds("log_resource_policies").most
_POLICIES: Mapping[str, tuple[str, str]] = {
    "AWS::SNS::Topic": ("AWS::SNS::TopicPolicy", "Topics"),
    "AWS::SQS::Queue": ("AWS::SQS::QueuePolicy", "Queues"),
    "AWS::Lambda::Function": ("AWS::Lambda::Permission", "FunctionName"),
}
"""Policies that let EventBridge in, by type of the target, and the property that names the target."""


@rule(
    "HF816",
    title="Pull-through caches are of registries that ECR can cache",
    each=App,
    source="ECR user guide, 'Sync an upstream registry with an Amazon ECR private registry'",
    suppressible=True,
)
def caches(app: App, _: Deployment) -> Iterator[Broken]:
    """
    ECR caches a few registries, and not NVIDIA's nvcr.io. Those that ask who one is need a secret whose name begins
    with ecr-pullthroughcache/. A prefix has one cache.
    """
    known = tuple(page_fact("pull_through_registries"))
    prefixes: dict[str, str] = {}
    for cache, node in app.each("AWS::ECR::PullThroughCacheRule"):
        url = text_of(node.get("UpstreamRegistryUrl").value)
        if url is not None and not url.removeprefix("https://").split("/")[0].endswith(known) and "${" not in url:
            yield refused(
                f"{cache.path}.UpstreamRegistryUrl",
                show(url),
                allowed=", ".join(known),
                fix="push the images into a repository of your own",
            )
        if (
            url is not None
            and url.endswith(("registry-1.docker.io", "ghcr.io", "azurecr.io", "registry.gitlab.com", "cgr.dev"))
            and not node.get("CredentialArn").present
        ):
            yield refused(
                f"{cache.path}.CredentialArn",
                f"no credentials for {url}",
                allowed="the ARN of a secret ecr-pullthroughcache/...",
                fix="add CredentialArn",
            )
        prefix = text_of(node.get("EcrRepositoryPrefix").value)
        if prefix is not None and prefix in prefixes:
            yield refused(
                f"{cache.path}.EcrRepositoryPrefix",
                f"{show(prefix)} again, after {prefixes[prefix]}",
                allowed="a prefix of its own",
                fix="write another prefix",
            )
        elif prefix is not None:
            prefixes[prefix] = cache.logical_id


@rule(
    "HF817",
    title="Alarms watch a metric that exists, over as many periods as are allowed",
    each=App,
    source="CloudFormation reference, AWS::CloudWatch::Alarm; FSx for Lustre user guide, 'Metrics and dimensions'",
)
def alarms(app: App, _: Deployment) -> Iterator[Broken]:
    """
    All periods together are at most a day, or a week from an hour on. Metrics of FSx and HyperPod have the names of
    their pages; another name is never there.
    """
    metrics = page_fact("metrics")
    for alarm, node in app.each("AWS::CloudWatch::Alarm"):
        period, periods = node.get("Period").integer(), node.get("EvaluationPeriods").integer()
        longest = 604800 if isinstance(period, int) and period >= 3600 else 86400
        if isinstance(period, int) and isinstance(periods, int) and period * periods > longest:
            yield refused(
                f"{alarm.path}.EvaluationPeriods",
                f"{periods} periods of {period} seconds",
                allowed="at most a day together; a week from periods of an hour on",
                fix="look at fewer or shorter periods",
            )
        space, name = node.get("Namespace").text(), node.get("MetricName").text()
        known = metrics.get(space) if isinstance(space, str) else None
        if known and isinstance(name, str) and name not in known:
            meant = closest_word(name, known)
            yield refused(
                f"{alarm.path}.MetricName",
                f"{name}, which {space} does not have",
                allowed=", ".join(known),
                fix=f"did you mean {meant}?" if meant else "take one of them",
            )


@rule(
    "HF822",
    title="Actions of alarms and targets of rules are ARNs",
    each=App,
    source="CloudFormation reference, AWS::CloudWatch::Alarm, AWS::Events::Rule Target, AWS::SNS::Subscription",
)
def actions(app: App, _: Deployment) -> Iterator[Broken]:
    """A topic is named by its ARN, which is what Ref gives; its name is refused, or reaches nobody."""
    places = [
        entry
        for _alarm, node in app.each("AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm")
        for name in ("AlarmActions", "OKActions", "InsufficientDataActions")
        for entry in node.get(name).items() or ()
    ]
    places += [
        entry.get("Arn") for _rule, node in app.each("AWS::Events::Rule") for entry in node.get("Targets").items() or ()
    ]
    places += [node.get("TopicArn") for _subscription, node in app.each("AWS::SNS::Subscription")]
    for place in places:
        by_name = isinstance(place.value, Reference) and place.value.attribute == "TopicName"
        if by_name or (isinstance(place.value, str) and not place.value.startswith("arn:")):
            topic = place.value.resource.logical_id if isinstance(place.value, Reference) else None
            yield refused(
                place.path,
                f"the name of {topic}" if topic else show(place.value),
                allowed="an ARN",
                fix=f"write Ref {topic}" if topic else "write the ARN of the topic",
            )


@rule(
    "HF818",
    title="EventBridge rules match events that are sent",
    each=App,
    source="SageMaker developer guide, 'Events that Amazon SageMaker AI sends to Amazon EventBridge'",
)
def events(app: App, _: Deployment) -> Iterator[Broken]:
    """
    A rule of EventBridge matches source and detail-type word for word. SageMaker's source is aws.sagemaker, and
    HyperPod's events are "SageMaker HyperPod Cluster State Change", "... Cluster Node Health Event" and "... Cluster
    Event".
    """
    known = page_fact("hyperpod_events")
    for _event, node in app.each("AWS::Events::Rule"):
        sources, kinds = node.get("EventPattern", "source"), node.get("EventPattern", "detail-type")
        names = [text for entry in kinds.items() or () if isinstance(text := entry.value, str)]
        about = any("hyperpod" in name.lower() for name in names)
        for entry in sources.items() or ():
            if isinstance(entry.value, str) and about and entry.value != "aws.sagemaker":
                yield refused(
                    entry.path,
                    show(entry.value),
                    allowed="aws.sagemaker, which sends HyperPod's events",
                    fix="write aws.sagemaker",
                )
            elif (
                isinstance(entry.value, str)
                and not entry.value.startswith("aws.")
                and closest_word(entry.value, ["aws.sagemaker"])
            ):
                yield refused(entry.path, show(entry.value), allowed="aws.sagemaker", fix="write aws.sagemaker")
        for entry in kinds.items() or ():
            if (
                isinstance(entry.value, str)
                and about
                and "hyperpod" in entry.value.lower()
                and entry.value not in known
            ):
                yield refused(
                    entry.path,
                    show(entry.value),
                    allowed=", ".join(known),
                    fix=f"did you mean {closest_word(entry.value, known) or known[0]}?",
                )


@rule(
    "HF823",
    severity="warning",
    title="Targets of EventBridge rules let EventBridge in",
    each=App,
    source="EventBridge user guide, 'Using resource-based policies for Amazon EventBridge'",
)
def targets(app: App, _: Deployment) -> Iterator[Broken]:
    """
    EventBridge sends to a topic, a queue or a function only where the target's own policy names events.amazonaws.com.
    Without it, the rule matches and nothing arrives.
    """
    if not app.complete:
        return
    for _rule, node in app.each("AWS::Events::Rule"):
        for entry in node.get("Targets").items() or ():
            arn = entry.get("Arn")
            target = arn.value.resource if isinstance(arn.value, Reference) else None
            if target is None or target.type not in _POLICIES or entry.get("RoleArn").present:
                continue
            policy, name = _POLICIES[target.type]
            about = [
                (own, [each.resource for each in references_in(own.get(name).value)]) for _, own in app.each(policy)
            ]
            if not any(_names_events(own) for own, named in about if target in named or not named):
                yield Broken(
                    path=arn.path,
                    message=f"{target.logical_id} has no {policy} that lets EventBridge in",
                    fix=f"add an {policy} for {target.logical_id} with the principal events.amazonaws.com",
                )


def _names_events(policy: Node) -> bool:
    text = json.dumps(policy.value, default=repr)
    return "events." in text or '"*"' in text


@rule(
    "HF821",
    title=f"CloudWatch Logs has at most {MOST_POLICIES} resource policies",
    each=App,
    source="CloudWatch Logs user guide, 'CloudWatch Logs quotas': resource policies, per Region and account",
)
def log_policies(app: App, _: Deployment) -> Iterator[Broken]:
    """Others of the account count too, and the quota cannot be raised: one policy may name several services."""
    policies = [policy for policy, _node in app.each("AWS::Logs::ResourcePolicy")]
    if len(policies) > MOST_POLICIES:
        last = policies[MOST_POLICIES]
        yield refused(
            f"{last.path}.PolicyName",
            f"{len(policies)} of AWS::Logs::ResourcePolicy",
            allowed=f"at most {MOST_POLICIES} in a region of an account",
            fix="join their statements",
        )


@rule(
    "HF819",
    title="AWS Budgets have a type that exists",
    each=App,
    source="CloudFormation reference, AWS::Budgets::Budget BudgetData",
)
def budgets(app: App, _: Deployment) -> Iterator[Broken]:
    """Budgets are of cost, usage, or the coverage and utilization of reservations and savings plans."""
    kinds = ("COST", "USAGE", "RI_UTILIZATION", "RI_COVERAGE", "SAVINGS_PLANS_UTILIZATION", "SAVINGS_PLANS_COVERAGE")
    units = ("DAILY", "MONTHLY", "QUARTERLY", "ANNUALLY", "CUSTOM")
    for budget, node in app.each("AWS::Budgets::Budget"):
        for name, allowed in (("BudgetType", kinds), ("TimeUnit", units)):
            value = node.get("Budget", name)
            if isinstance(value.value, str) and value.value not in allowed:
                yield refused(
                    f"{budget.path}.Budget.{name}",
                    show(value.value),
                    allowed=", ".join(allowed),
                    fix=f"write {closest_word(value.value, allowed) or allowed[0]}",
                )
