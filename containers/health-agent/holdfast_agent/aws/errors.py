"""Error of an AWS call, in a form that callers decide by."""


class AwsError(Exception):
    """
    A call of AWS failed.

    Args:
        code: AWS's error code; ``Unreachable`` without a response, ``NoCredentials`` and ``NoRegion`` before a request.
        status: HTTP status. Default: 0, no response.
    """

    def __init__(self, code: str, message: str, *, status: int = 0) -> None:
        super().__init__(f"{code}: {message}")
        self.code, self.message, self.status = code, message, status
