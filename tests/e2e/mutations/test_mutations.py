"""Each safeguard switched off makes a test of ``make test`` fail; ``tests/cases/mutations`` lists them."""

import pytest
from checkout_copy import Checkout
from mutating import Mutation, mutations, run_tests, survives

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1000)]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    return Checkout(tmp_path_factory.mktemp("mutated"), whole=True)


def test_the_tests_pass_while_every_safeguard_is_on(checkout: Checkout) -> None:
    done = run_tests(checkout, tuple(sorted({test for mutation in mutations() for test in mutation.tests})))

    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.parametrize("mutation", mutations(), ids=lambda mutation: mutation.name)
def test_a_safeguard_that_is_off_is_noticed(mutation: Mutation, checkout: Checkout) -> None:
    assert survives(checkout, mutation) == ""
