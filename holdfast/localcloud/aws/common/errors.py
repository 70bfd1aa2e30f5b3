"""The one exception by which a service of the embedded AWS refuses a request."""


class ServiceError(Exception):
    """An error as the API's callers see it: code, message, HTTP status."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status


class NotOurs(Exception):  # noqa: N818 - not an error: the request belongs to moto
    """Raised by an operation that finds, from its arguments, that moto owns the resource in question."""


def refuse(message: str) -> ServiceError:
    return ServiceError("ValidationException", message)
