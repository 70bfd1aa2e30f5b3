"""
The embedded AWS: moto, and what moto lacks (CloudFormation, FSx, HyperPod), on loopback.

    with serve(home=Path("/tmp/cloud"), hyperpod="simulated") as aws:
        boto3.client("fsx", endpoint_url=aws.endpoint, region_name="us-west-2")

Importing this package is cheap: `serve` imports the server and moto.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.localcloud.aws.host import EmbeddedAws, PortBusyError, serve

__all__ = ["EmbeddedAws", "PortBusyError", "serve"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from holdfast.localcloud.aws import host

        return getattr(host, name)
    raise AttributeError(name)
