"""Errors shared by all services, as each protocol names them (API references, "Common Errors")."""

from holdfast.localcloud.aws.common import ServiceError

JSON = {
    "AccessDenied": ("AccessDeniedException", 400),
    "ExpiredToken": ("ExpiredTokenException", 400),
    "IncompleteSignature": ("IncompleteSignatureException", 400),
    "InvalidClientTokenId": ("UnrecognizedClientException", 400),
    "InvalidRequest": ("SerializationException", 400),
    "MissingAuthenticationToken": ("MissingAuthenticationTokenException", 400),
    "SignatureDoesNotMatch": ("InvalidSignatureException", 400),
}
EC2 = {
    "AccessDenied": ("UnauthorizedOperation", 403),
    "InvalidClientTokenId": ("AuthFailure", 401),
    "SignatureDoesNotMatch": ("AuthFailure", 401),
}
S3 = {
    "IncompleteSignature": ("AuthorizationHeaderMalformed", 400),
    "InvalidClientTokenId": ("InvalidAccessKeyId", 403),
    "MissingAuthenticationToken": ("AccessDenied", 403),
}


def for_service(error: ServiceError, *, service: str, protocol: str) -> ServiceError:
    table = S3 if service == "s3" else JSON if protocol.endswith("json") else EC2 if protocol == "ec2" else {}
    code, status = table.get(error.code, (error.code, error.status))
    if protocol == "rest-json" and error.status in (401, 403):
        status = 403
    return ServiceError(code, error.message, status)
