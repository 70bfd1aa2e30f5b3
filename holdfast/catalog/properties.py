"""What ties a setting, what rules judge and a template together: the CloudFormation property that all three mean."""

from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin

FILE_SYSTEM = "AWS::FSx::FileSystem"
ASSOCIATION = "AWS::FSx::DataRepositoryAssociation"
CLUSTER = "AWS::SageMaker::Cluster"


@dataclass(frozen=True)
class Property:
    """
    A property of a resource, in the annotation of a field: ``Annotated[int, Property(FILE_SYSTEM, "KmsKeyId")]``.

    On a setting of the environment file it says what the setting becomes. On what rules judge it says where a template
    has the value.
    """

    resource: str
    """The type of the resource."""
    path: str
    """``LustreConfiguration.EfaEnabled``"""
    default: Any = None
    """What the service takes where a template says nothing."""

    @property
    def name(self) -> str:
        """What the API calls it."""
        return self.path.rpartition(".")[2]

    @property
    def pointer(self) -> str:
        """As CloudFormation's registry writes it: ``LustreConfiguration/EfaEnabled``."""
        return self.path.replace(".", "/")

    def read(self, described: Any) -> Any:
        """The value in what an API tells of a resource, or in its properties; the default where it says nothing."""
        for part in self.path.split("."):
            described = described.get(part) if isinstance(described, dict) else None
        return self.default if described is None else described


def property_in(annotation: Any) -> Property | None:
    """The property that the annotation of a field names."""
    found = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    return next((each for each in found if isinstance(each, Property)), None)
