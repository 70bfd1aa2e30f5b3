"""Words that a shell completes from files and facts."""

from holdfast.environments import environment_names


def complete_environment(incomplete: str) -> list[str]:
    return [name for name in environment_names() if name.startswith(incomplete)]


def complete_instance_type(incomplete: str) -> list[str]:
    from holdfast.catalog import instance_types

    return [name for name in sorted(instance_types()) if name.startswith(incomplete)]
