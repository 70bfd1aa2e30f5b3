"""From the path of a REST request to the operation it means."""

import pytest
from moto.core.utils import get_service_model
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request

from holdfast.localcloud.aws.host import Routes


@pytest.fixture(scope="module")
def eks():
    return Routes(get_service_model("eks"))


def request(method, uri):
    environ = EnvironBuilder(method=method, path=uri.partition("?")[0]).get_environ()
    return Request({**environ, "RAW_URI": uri})


@pytest.mark.parametrize(
    ("method", "uri", "operation"),
    [
        ("GET", "/clusters", "ListClusters"),
        ("GET", "/clusters?maxResults=3", "ListClusters"),
        ("POST", "/clusters", "CreateCluster"),
        ("GET", "/clusters/lab/addons/vpc-cni", "DescribeAddon"),
        ("GET", "/nothing", ""),
        ("PATCH", "/clusters", ""),
    ],
)
def test_method_and_path_mean_an_operation(eks, method, uri, operation):
    assert eks.operation(request(method, uri)) == operation


def test_an_arn_in_a_path_is_one_label(eks):
    asked = request("GET", "/clusters/lab/access-entries/arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fa%2Fb")

    assert eks.operation(asked) == "DescribeAccessEntry"
    assert eks.labels(asked) == {"name": "lab", "principalArn": "arn:aws:iam::1:role/a/b"}
