"""The table of update policies: complete, sourced, and of one mind with CloudFormation's registry."""

import pytest

from holdfast.localcloud.aws.cloudformation.registry import paths, schema
from holdfast.updates import POLICIES, UPDATES, Effect, settings, updates_text
from holdfast.updates.policies import MEANINGS

MAPPED = [policy for policy in POLICIES if policy.resource_property]


def test_every_setting_has_one_policy_and_every_policy_names_settings() -> None:
    named = [setting for policy in POLICIES for setting in policy.settings]

    assert sorted(named) == sorted(settings())


def test_every_verdict_gives_its_reason_and_what_stops_people_says_what_to_do() -> None:
    for policy in POLICIES:
        assert policy.source, policy.settings
        for verdict in (policy, *policy.cases):
            assert verdict.reason, policy.settings
            assert verdict.action or verdict.effect < Effect.REPLACES_GROUP, policy.settings


def test_every_effect_has_words_and_a_meaning() -> None:
    assert len({effect.words for effect in Effect}) == len(Effect)
    assert set(MEANINGS) == set(Effect)


def test_texts_are_plain_ascii_without_a_full_stop() -> None:
    for policy in POLICIES:
        for verdict in (policy, *policy.cases):
            for text in (verdict.reason, verdict.action):
                assert text.isascii()
                assert not text.endswith(".")


@pytest.mark.parametrize("policy", MAPPED, ids=lambda policy: policy.resource_property)
def test_what_cloudformation_can_only_create_is_never_called_in_place(policy) -> None:
    kind, _, path = policy.resource_property.partition("/")
    create_only = path in paths(kind, "createOnlyProperties")

    assert path.partition("/")[0] in schema(kind)["properties"]
    assert create_only == (policy.effect >= Effect.REPLACES_RESOURCE)


def test_the_page_is_current() -> None:
    assert UPDATES.read_text() == updates_text(), "run: python -m holdfast.updates"
