def installed_version() -> str:
    from importlib.metadata import version  # only where the version is asked for: it takes 20 ms to load

    return version("holdfast-hyperpod")
