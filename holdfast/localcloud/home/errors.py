"""The error of the local cloud as a whole."""


class LocalCloudError(Exception):
    """The local cloud cannot run here; the message says what is missing and what to do."""
