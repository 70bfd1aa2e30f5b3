from holdfast.localcloud.aws.common import ServiceError


def missing(message: str) -> ServiceError:
    return ServiceError("ResourceNotFoundException", message, 404)


def in_use(message: str) -> ServiceError:
    return ServiceError("ResourceInUseException", message, 409)


def invalid_parameter(message: str) -> ServiceError:
    return ServiceError("InvalidParameterException", message)


def invalid_request(message: str) -> ServiceError:
    return ServiceError("InvalidRequestException", message)


def server(message: str) -> ServiceError:
    return ServiceError("ServerException", message, 500)
