"""The table of update policies: complete, sourced, and of one mind with CloudFormation's registry."""

import pytest

from holdfast.catalog import FILE_SYSTEM, GROUP, Property
from holdfast.localcloud.aws.cloudformation.registry import paths, schema
from holdfast.updates import POLICIES, Effect, becomes, settings, with_default_policies
from holdfast.updates.policies import MEANINGS


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


OF_RESOURCES = [setting for setting, found in becomes().items() if not found.structure]


# An item of another name is another resource.
@pytest.mark.parametrize("setting", [setting for setting in OF_RESOURCES if not setting.endswith("[].name")])
def test_what_cloudformation_can_only_create_is_never_called_in_place(setting: str) -> None:
    found = becomes()[setting]
    (policy,) = (policy for policy in POLICIES if setting in policy.settings)
    create_only = set(paths(found.resource, "createOnlyProperties"))
    holders = {found.pointer.rsplit("/", depth)[0] for depth in range(found.pointer.count("/") + 1)}

    assert found.pointer.partition("/")[0] in schema(found.resource)["properties"]
    if holders & create_only:
        assert policy.effect >= Effect.REPLACES_RESOURCE
    else:
        assert policy.effect < Effect.REPLACES_RESOURCE or policy.effect is Effect.REFUSED


@pytest.mark.parametrize("setting", [setting for setting, found in becomes().items() if found.structure])
def test_a_structure_of_a_resource_has_the_property_of_a_setting(setting: str) -> None:
    found = becomes()[setting]

    assert found.pointer.partition("/")[0] in schema(found.type)["definitions"][found.structure]["properties"]


def test_a_setting_of_a_structure_has_no_policy_by_itself() -> None:
    assert with_default_policies((), {"cluster.instance_groups[].image_id": Property(GROUP, "ImageId")}) == ()


def test_a_setting_without_a_policy_of_its_own_is_changed_in_place() -> None:
    property_ = Property(FILE_SYSTEM, "LustreConfiguration.DataCompressionType")
    (policy,) = with_default_policies((), {"storage.lustre.compression": property_})

    assert policy.settings == ("storage.lustre.compression",)
    assert policy.effect is Effect.IN_PLACE
    assert "DataCompressionType" in policy.reason
