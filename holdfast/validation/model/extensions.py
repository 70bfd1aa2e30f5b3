"""Extensions of a cluster under Slurm."""

from dataclasses import dataclass
from typing import Annotated

from holdfast.catalog import EXTENSION, Property
from holdfast.validation.model.item import Item


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Extension(Item):
    """Software that HyperPod installs on the nodes (API: CreateClusterExtension)."""

    configuration: Annotated[str | None, Property(EXTENSION, "ConfigurationValues")] = None
    """JSON object. None: the defaults."""
