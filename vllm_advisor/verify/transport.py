"""HTTP on the standard library: one request, one reply of any status, clear failures.

Redirects are not followed: a key that goes with a request never goes anywhere else.
"""

from __future__ import annotations

import http.client
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass

from vllm_advisor.errors import UnknownFactError
from vllm_advisor.units import format_bytes
from vllm_advisor.visible import visible

MAX_BODY_BYTES = 50_000_000  # /tokenize lists every token: 8 MB for a million
_CHUNK_BYTES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came back. Names of ``headers`` are in lower case; ``seconds`` from start to end."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    seconds: float


def printable(text: str) -> str:
    """Text of a server as one line that a terminal shows as it is."""
    return visible(" ".join(text.split()))


def request(
    url: str, *, timeout: float, headers: Mapping[str, str], body: bytes | None = None
) -> Reply:
    """GET ``url``, or POST ``body`` to it; proxies as the environment names them.

    Args:
        url: http or https.
        timeout: seconds for each wait, and for the whole once bytes arrive.
        headers: sent as they are.
        body: what to POST.

    Raises:
        UnknownFactError: no reply, one that was cut off, or one of more than 50 MB.
    """
    started = time.monotonic()
    try:
        sent = urllib.request.Request(url, data=body, headers=dict(headers))  # noqa: S310 - the opener has http(s) only
        with _opener().open(sent, timeout=timeout) as response:
            return Reply(
                status=response.status,
                headers={name.lower(): value for name, value in response.headers.items()},
                body=_read(response, url, started + timeout),
                seconds=time.monotonic() - started,
            )
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _unreachable(error, url, timeout) from None


def _opener() -> urllib.request.OpenerDirector:
    """Built by hand: no file: or ftp: addresses, no redirects, and every status is a reply."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.UnknownHandler(),
    ):
        opener.add_handler(handler)
    return opener


def _read(response: http.client.HTTPResponse, url: str, deadline: float) -> bytes:
    body = bytearray()
    while chunk := response.read(_CHUNK_BYTES):
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise UnknownFactError(
                f"the answer is larger than {format_bytes(MAX_BODY_BYTES)}",
                where=url,
                fix="check that --base-url is an OpenAI API",
            )
        if time.monotonic() > deadline:
            raise TimeoutError
    if response.length:  # bytes still to come when the connection ended
        raise ConnectionError("the answer was cut off")
    return bytes(body)


def _unreachable(error: Exception, url: str, timeout: float) -> UnknownFactError:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, TimeoutError):
        what = f"no answer within {timeout:g} s"
        fix = "raise --timeout, or see in the server's log what keeps it"
    elif isinstance(cause, ssl.SSLError):
        what = f"the TLS connection failed ({cause.reason or cause})"
        fix = "name the server's CA in SSL_CERT_FILE, or check http against https"
    elif isinstance(cause, ConnectionResetError | BrokenPipeError | http.client.HTTPException):
        what = f"the connection was lost ({printable(str(cause)) or type(cause).__name__})"
        fix = "see in the server's log why it ended; then run this again"
    else:
        what = f"cannot reach the server ({printable(str(cause)) or type(cause).__name__})"
        fix = "check the address, and that the server runs (vLLM answers GET /health)"
    return UnknownFactError(what, where=url, fix=fix)
