class LocalCloudError(Exception):
    """The local cloud cannot run here; the message has the cause and the fix."""
