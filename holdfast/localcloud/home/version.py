def installed_version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # only where it is asked for: it takes 20 ms to load

    try:
        return version("holdfast-hyperpod")
    except PackageNotFoundError:
        return version("holdfast")  # pip install . of a checkout
