"""Properties of EKS clusters, as Holdfast makes them."""

from typing import Any

from holdfast.validation.cloudformation import UNRESOLVED, Properties
from holdfast.validation.model import EksControlPlane
from holdfast.validation.translation.properties import Places, properties_of


def eks_cluster(
    described: object = None, *, name: Any, version: Any, public_access_cidrs: Any, places: Places = None
) -> Properties:
    """Properties of a cluster that only access entries open, from the internet to these blocks alone."""
    found = properties_of(
        EksControlPlane,
        described,
        places=places,
        version=version,
        authentication_mode="API",
        private_access=True,
        public_access=public_access_cidrs if public_access_cidrs is UNRESOLVED else bool(public_access_cidrs),
        public_access_cidrs=public_access_cidrs,
        bootstraps_addons=False,
    )
    found.put(["Name"], name)
    found["AccessConfig"]["BootstrapClusterCreatorAdminPermissions"] = False
    return found
