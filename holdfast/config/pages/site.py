def site_url() -> str:
    """Return the address of the documentation, from the metadata of this installation; empty without one."""
    from importlib.metadata import PackageNotFoundError, metadata  # only for what other programs read

    try:
        urls = metadata("holdfast-rules").get_all("Project-URL")
    except PackageNotFoundError:
        urls = metadata("holdfast").get_all("Project-URL")  # pip install . of a checkout
    addresses: dict[str, str] = dict(url.split(", ", 1) for url in urls or ())
    return addresses.get("Documentation", "")
