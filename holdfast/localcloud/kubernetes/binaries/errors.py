"""What ends a build or a search for binaries: one sentence for the user."""

from holdfast.localcloud.home import LocalCloudError


class BinariesError(LocalCloudError):
    """The binaries of Kubernetes cannot be made, or are not what they should be; the message says what to do."""
