def installed_version() -> str:
    """Version of the wheel with the command line, which all wheels share."""
    from importlib.metadata import version  # only where the version is asked for: it takes 20 ms to load

    return version("holdfast-hyperpod")
