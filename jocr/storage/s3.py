"""Objects of S3 and of what speaks its protocol, through boto3, imported on first use.

Every request is repeated with exponential back-off and full jitter while the storage is overloaded, the line breaks or
a permission is refused (which some do for a moment under load), in place of botocore's own retries: those give up on a
refusal at once and on an overload when their common quota is used up.
"""

from __future__ import annotations

import contextlib
import os
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from jocr.storage.failures import as_storage_error, code_of, is_from_library
from jocr.storage.local import PIECE, Copy, Writer
from jocr.storage.uris import Entry, split_s3

T = TypeVar("T")

ATTEMPTS = 10  # of one request in all; at a failure rate of 30 % one request in 170,000 fails for good
REFUSALS = 4  # attempts where the answer is 403, or where nothing answers: mostly that is how things are
BODIES = 4  # times that an answer's body may be begun
FIRST_WAIT, LONGEST_WAIT = 0.1, 10.0  # seconds: bounds of the back-off before jitter
_OVERLOADED = {429, 500, 502, 503, 504}
_PASSING = {"RequestTimeout", "SlowDown", "Throttling", "ConditionalRequestConflict", "OperationAborted"}
_FINAL_REFUSALS = {"InvalidAccessKeyId", "SignatureDoesNotMatch", "AllAccessDisabled", "InvalidObjectState"}
_BROKEN_LINE = {"HTTPClientError", "ConnectionError"}
_NOTHING_THERE = {"EndpointConnectionError", "ConnectTimeoutError"}
_SPOOL = 16 << 20  # bytes of a writer's output that are kept in memory

_lock = threading.Lock()
_clients: dict[tuple[Any, ...], Any] = {}


def client() -> Any:
    """The S3 client of this process and these settings; boto3 clients are safe to share, their creation is not."""
    settings = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_DEFAULT_REGION")
    identity = (os.getpid(), *(os.environ.get(name) for name in settings))
    with _lock:
        if identity not in _clients:
            _clients[identity] = _new_client()
        return _clients[identity]


def _new_client() -> Any:
    import boto3
    from botocore.config import Config

    config = Config(
        retries={"total_max_attempts": 1, "mode": "standard"},
        max_pool_connections=32,
        connect_timeout=5,
        read_timeout=60,
    )
    made = boto3.session.Session().client("s3", config=config)
    made.meta.events.register_first("needs-retry.s3", _wait_before_retry)
    return made


def _wait_before_retry(attempts: int, response: Any, caught_exception: Any, **_: Any) -> float | None:
    """Seconds until the request is sent again, None for not at all; botocore asks after every answer."""
    if attempts >= _attempts_allowed(response, caught_exception):
        return None
    return random.uniform(0, min(LONGEST_WAIT, FIRST_WAIT * 2 ** (attempts - 1)))


def _attempts_allowed(response: Any, error: Any) -> int:
    if error is not None:
        names = {kind.__name__ for kind in type(error).__mro__}
        if names & _NOTHING_THERE:
            return REFUSALS
        return ATTEMPTS if names & _BROKEN_LINE else 1
    http, parsed = response
    code = parsed.get("Error", {}).get("Code", "")
    if http.status_code in _OVERLOADED or code in _PASSING:
        return ATTEMPTS
    return REFUSALS if http.status_code == 403 and code not in _FINAL_REFUSALS else 1


class _BrokenBodyError(Exception):
    """The body of an answer broke off; botocore's retries end at its head."""


@contextlib.contextmanager
def _body(answer: Any) -> Iterator[Any]:
    with contextlib.closing(answer["Body"]) as body:
        try:
            yield body
        except Exception as error:
            if is_from_library(error):
                raise _BrokenBodyError from error
            raise


def _whole(read: Callable[[], T]) -> T:
    """What ``read`` returns, begun again where a body broke off."""
    for attempt in range(1, BODIES + 1):
        try:
            return read()
        except _BrokenBodyError as error:
            if attempt == BODIES and error.__cause__ is not None:
                raise error.__cause__ from None
            time.sleep(random.uniform(0, FIRST_WAIT * 2**attempt))
    raise AssertionError("unreachable")


def head(uri: str) -> Entry:
    bucket, key = split_s3(uri)
    with as_storage_error("read", uri):
        facts = client().head_object(Bucket=bucket, Key=key)
    return Entry(uri, int(facts["ContentLength"]), facts.get("ETag", "").strip('"'))


def read(uri: str, limit: int | None) -> bytes:
    bucket, key = split_s3(uri)

    def get() -> bytes:
        # a plain GET cut short: a Range request on an empty object is an error
        with _body(client().get_object(Bucket=bucket, Key=key)) as body:
            return body.read() if limit is None else body.read(limit)

    with as_storage_error("read", uri):
        return _whole(get)


def copy(uri: str, target: Copy, accept: Callable[[Entry], None]) -> Entry:
    """Stream the object into ``target``; ``accept`` may raise at what the answer's head says."""
    bucket, key = split_s3(uri)

    def get() -> Entry:
        target.restart()
        answer = client().get_object(Bucket=bucket, Key=key)
        with _body(answer) as body:
            entry = Entry(uri, int(answer["ContentLength"]), answer.get("ETag", "").strip('"'))
            accept(entry)
            while data := body.read(PIECE):
                target.write(data)
        return entry

    with as_storage_error("read", uri):
        return _whole(get)


def entries(source: str) -> Iterator[Entry]:
    """The objects under a prefix, a page of 1,000 at a time; markers of folders are left out."""
    bucket, prefix = split_s3(source)
    with as_storage_error("list", source):
        for page in client().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
            for item in page.get("Contents", ()):
                if not item["Key"].endswith("/"):
                    yield Entry(f"s3://{bucket}/{item['Key']}", int(item["Size"]), item.get("ETag", "").strip('"'))


def put(uri: str, write: Writer) -> None:
    from boto3.s3.transfer import TransferConfig

    bucket, key = split_s3(uri)
    with as_storage_error("write", uri), tempfile.SpooledTemporaryFile(_SPOOL) as spool:
        write(spool)  # type: ignore[arg-type]
        spool.seek(0)
        # the object appears when it is complete
        client().upload_fileobj(spool, bucket, key, Config=TransferConfig(use_threads=False))


def put_new(uri: str, data: bytes) -> bool:
    """PUT with ``If-None-Match: *``; false where the object existed."""
    bucket, key = split_s3(uri)
    with as_storage_error("write", uri):
        try:
            client().put_object(Bucket=bucket, Key=key, Body=data, IfNoneMatch="*")
        except Exception as error:
            if code_of(error) not in {"PreconditionFailed", "412", "ConditionalRequestConflict", "409"}:
                raise
            repeated = getattr(error, "response", {}).get("ResponseMetadata", {}).get("RetryAttempts", 0)
            if not repeated:
                return False
            try:  # an earlier attempt may have been carried out though its answer was lost: then the object is ours
                return read(uri, None) == data
            except FileNotFoundError:
                raise error from None
    return True


def delete(uri: str) -> None:
    bucket, key = split_s3(uri)
    with contextlib.suppress(FileNotFoundError), as_storage_error("delete", uri):
        client().delete_object(Bucket=bucket, Key=key)
