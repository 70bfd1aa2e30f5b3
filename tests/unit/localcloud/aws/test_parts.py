"""Services of the embedded AWS hold parts, and the host finds operations in them."""

from typing import Any

import pytest

from holdfast.localcloud.aws.cloudformation import CloudFormation
from holdfast.localcloud.aws.common import Plane
from holdfast.localcloud.aws.eks import Eks
from holdfast.localcloud.aws.fsx import Fsx
from holdfast.localcloud.aws.sagemaker import SageMaker


def no_client(service: str) -> Any:
    raise AssertionError(f"nothing asks {service}")


def made(kind: type) -> Any:
    more = {"plane": Plane(simulated=True)} if kind in (Eks, SageMaker) else {}
    return kind(client=no_client, account="123456789012", region="us-west-2", **more)


def methods(kind: type) -> set[str]:
    return {name for name, value in vars(kind).items() if callable(value) and not name.startswith("_")}


SERVICES = (CloudFormation, Eks, Fsx, SageMaker)


@pytest.mark.parametrize("kind", SERVICES)
def test_a_service_has_the_parts_that_it_names(kind: Any) -> None:
    service = made(kind)
    for name, part in kind.PARTS.items():
        assert type(getattr(service, name)) is part


@pytest.mark.parametrize("kind", SERVICES)
def test_no_part_hides_a_method_of_another(kind: Any) -> None:
    holders = [kind, *kind.PARTS.values()]
    names = [name for holder in holders for name in methods(holder)]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("kind", [*SERVICES, *(part for kind in SERVICES for part in kind.PARTS.values())])
def test_no_part_takes_over_what_another_class_has(kind: type) -> None:
    assert kind.__bases__ == (object,)
