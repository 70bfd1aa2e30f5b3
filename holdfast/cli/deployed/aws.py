class AwsError(Exception):
    """Error of an AWS service; ``code`` is AWS's own, such as ResourceNotFoundException."""

    def __init__(self, *, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code, self.message = code, message


class UnreachableError(Exception):
    """The embedded AWS does not answer."""
