"""Errors of the backends -> ``StorageError`` sentences that name the file, the cause and what to do about it."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator

from jocr.errors import StorageError
from jocr.storage.uris import split_s3

ABSENT = {"404", "NoSuchKey", "NotFound"}
_LIBRARIES = ("boto3", "botocore", "s3transfer", "urllib3")
_ACTIONS = {"read": "s3:GetObject", "list": "s3:ListBucket", "write": "s3:PutObject", "delete": "s3:DeleteObject"}
_LOCAL = {
    errno.EACCES: "give this user the right to {verb} it, or name another place",
    errno.EPERM: "give this user the right to {verb} it, or name another place",
    errno.EROFS: "the file system is read-only: name another place",
    errno.ENOSPC: "free some space or name another place",
    errno.EDQUOT: "the quota is used up: free some space or name another place",
    errno.ENOTDIR: "a part of the path is a file, not a folder: name another place",
    errno.EEXIST: "a part of the path is a file, not a folder: name another place",
    errno.ENAMETOOLONG: "shorten the name",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
}
_REMOTE = {
    ("NoSuchBucket",): "there is no bucket {bucket!r}: create it or correct the name",
    ("InvalidBucketName", "ParamValidationError"): "no bucket can be named {bucket!r}: correct the name",
    ("AccessDenied", "403", "Forbidden", "AllAccessDisabled"): (
        "grant {action} on bucket {bucket!r} to the credentials in use, or set others"
    ),
    (
        "InvalidAccessKeyId",
        "SignatureDoesNotMatch",
        "ExpiredToken",
        "InvalidToken",
        "NoCredentialsError",
        "PartialCredentialsError",
        "CredentialRetrievalError",
        "TokenRetrievalError",
        "ProfileNotFound",
    ): "set valid credentials (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or the machine's role)",
    ("PermanentRedirect", "AuthorizationHeaderMalformed", "301", "IllegalLocationConstraintException"): (
        "the bucket lies in another region: set AWS_DEFAULT_REGION"
    ),
    ("EndpointConnectionError", "ConnectTimeoutError", "InvalidEndpoint"): "check the network and AWS_ENDPOINT_URL",
    ("SlowDown", "503", "429", "TooManyRequests", "500", "InternalError", "ServiceUnavailable"): (
        "the storage stayed overloaded: run again later, or with fewer workers"
    ),
}
_REMEDIES = {code: remedy for codes, remedy in _REMOTE.items() for code in codes}


@contextlib.contextmanager
def as_storage_error(verb: str, uri: str) -> Iterator[None]:
    """Backend errors -> ``StorageError``; a missing file stays ``FileNotFoundError`` on reading."""
    try:
        yield
    except FileNotFoundError:
        if verb != "read":
            raise StorageError(_sentence(verb, uri, "no such file or folder", "name another place")) from None
        raise
    except UnicodeEncodeError:
        raise StorageError(_sentence(verb, ascii(uri), "the name is not UTF-8", "correct the name")) from None
    except OSError as error:
        remedy = _LOCAL.get(error.errno or 0, "").format(verb=verb)
        raise StorageError(_sentence(verb, uri, error.strerror or str(error), remedy)) from error
    except Exception as error:
        if not is_from_library(error):
            raise
        if code_of(error) in ABSENT and verb in ("read", "delete"):
            raise FileNotFoundError(uri) from error
        raise StorageError(_sentence(verb, uri, str(error), _remote_remedy(verb, uri, error))) from error


def is_from_library(error: Exception) -> bool:
    """Whether a package that talks to the storage raised it, and not this program."""
    return type(error).__module__.startswith(_LIBRARIES)


def code_of(error: Exception) -> str:
    """S3's error code ("SlowDown", or the HTTP status as text where there is no body); empty for other errors."""
    response = getattr(error, "response", None)
    return str(response.get("Error", {}).get("Code", "")) if isinstance(response, dict) else ""


def _remote_remedy(verb: str, uri: str, error: Exception) -> str:
    remedy = _REMEDIES.get(code_of(error)) or _REMEDIES.get(type(error).__name__, "")
    return remedy.format(bucket=split_s3(uri)[0], action=_ACTIONS.get(verb, "access"))


def _sentence(verb: str, uri: str, cause: str, remedy: str) -> str:
    return f"cannot {verb} {uri}: {cause}" + (f"; {remedy}" if remedy else "")
