"""The version, as the distribution says it; `make setup` says it for a checkout."""


def installed_version() -> str:
    """All wheels of this repository have one version: this is the one that brings the command line."""
    from importlib.metadata import version  # only where the version is asked for: it takes 20 ms to load

    return version("holdfast-hyperpod")
