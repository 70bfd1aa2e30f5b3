class ServiceError(Exception):
    """An error as API callers see it: code, message, HTTP status."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status


class NotOurs(Exception):  # noqa: N818 - not an error: the request belongs to moto
    """Raised by an operation whose resource belongs to moto."""


def refuse(message: str) -> ServiceError:
    return ServiceError("ValidationException", message)
