"""Stand-in for ``docker`` without a container engine, so that the CDK can publish images to the embedded AWS."""

from holdfast.localcloud.docker_stand_in.program import (
    ManifestStore,
    StandInError,
    check,
    instructions,
    main,
    manifest_of,
)

__all__ = ["ManifestStore", "StandInError", "check", "instructions", "main", "manifest_of"]
