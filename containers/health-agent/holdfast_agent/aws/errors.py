"""Why a call gave no answer, in a form that callers decide by."""


class AwsError(Exception):
    """
    A call of AWS failed.

    Args:
        code: AWS's name of it, such as ``ThrottlingException``; ``Unreachable`` where nothing answered,
            ``NoCredentials`` and ``NoRegion`` where nothing could be asked.
        message: What was said.
        status: Of HTTP. Default: 0, there was no answer.
    """

    def __init__(self, code: str, message: str, *, status: int = 0) -> None:
        super().__init__(f"{code}: {message}")
        self.code, self.message, self.status = code, message, status
