"""The list of safeguards follows the code: ``tests/e2e/mutations`` can switch each of them off."""

from mutating import missing, mutations


def test_each_safeguard_is_where_the_list_says() -> None:
    assert {mutation.name: why for mutation in mutations() if (why := missing(mutation))} == {}
    assert [mutation.name for mutation in mutations() if mutation.old == mutation.new] == []


def test_each_guarantee_that_has_safeguards_in_the_code_has_some_in_the_list() -> None:
    assert {mutation.guarantee for mutation in mutations()} >= {"G3", "G5", "G7", "G8", "G9"}
