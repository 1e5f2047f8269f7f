"""Codes of AWS's errors, and names of its client's, by what they mean to a caller."""

from __future__ import annotations

# No credentials were found.
CREDENTIALS = (
    "NoCredentialsError",
    "PartialCredentialsError",
    "CredentialRetrievalError",
    "TokenRetrievalError",
    "SSOTokenLoadError",
    "UnauthorizedSSOTokenError",
    "NoAuthTokenError",
    "LoginRefreshRequired",
)
# Credentials were found, and AWS refuses them.
REFUSED_KEYS = (
    "AuthFailure",
    "InvalidClientTokenId",
    "UnrecognizedClientException",
    "SignatureDoesNotMatch",
    "InvalidAccessKeyId",
    "ExpiredToken",
    "ExpiredTokenException",
    "RequestExpired",
    "InvalidToken",
    "OptInRequired",
    "Blocked",
)
# The credentials are good, and have no right to this call.
NO_RIGHT = (
    "UnauthorizedOperation",
    "AccessDenied",
    "AccessDeniedException",
    "403",
    "Forbidden",
    "AllAccessDisabled",
    "KMS.AccessDeniedException",
)
# The same call may be answered later.
BUSY = (
    "RequestLimitExceeded",
    "Throttling",
    "ThrottlingException",
    "ThrottledException",
    "TooManyRequestsException",
    "RequestThrottled",
    "EC2ThrottledException",
    "SlowDown",
    "InternalError",
    "InternalFailure",
    "ServiceUnavailable",
    "Unavailable",
    "InternalServerError",
    "500",
    "502",
    "503",
    "504",
    "RequestTimeout",
    "OperationAborted",
    "InternalErrorException",
)
