from holdfast.localcloud.home import LocalCloudError


class BinariesError(LocalCloudError):
    """Binaries are invalid or cannot be built; the message has the fix."""
