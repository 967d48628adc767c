"""HTTP GET for the Hub on the standard library: token, redirects, ranges, clear failures."""

from __future__ import annotations

import http.client
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import IO
from urllib.parse import urlsplit

from vllm_advisor.errors import UnknownFactError
from vllm_advisor.units import format_bytes

MAX_BODY_BYTES = 50_000_000

OFFLINE_ADVICE = (
    "offline, give a folder with config.json or a bundled profile (`vllm-advisor profiles models`)"
)


class HubRefusedError(UnknownFactError):
    """The Hub answered with an HTTP error ``status``."""

    def __init__(self, what: str, *, where: str, fix: str, status: int) -> None:
        super().__init__(what, where=where, fix=fix)
        self.status = status


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    default = {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, parts.hostname, parts.port or default


class _KeepTokenAtHome(urllib.request.HTTPRedirectHandler):
    """Lets the token follow a redirect within its own origin (scheme, host, port) only."""

    def redirect_request(  # noqa: PLR0917 - urllib's signature
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        if request is not None and _origin(newurl) != _origin(req.full_url):
            request.remove_header("Authorization")
        return request


def _web_opener() -> urllib.request.OpenerDirector:
    """Built by hand: ``build_opener`` would also open file:, ftp: and data: addresses."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.UnknownHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        _KeepTokenAtHome(),
    ):
        opener.add_handler(handler)
    return opener


@dataclass(frozen=True, slots=True, kw_only=True)
class HubClient:
    """Reads files of the Hub; ``timeout`` in seconds for every wait on the network."""

    token: str | None = field(repr=False)
    timeout: float
    _opener: urllib.request.OpenerDirector = field(
        default_factory=_web_opener, init=False, repr=False, compare=False
    )

    def find(self, url: str, *, first: int = 0, count: int | None = None) -> bytes | None:
        """As :meth:`get`, but ``None`` for a file a model need not have and has not."""
        try:
            return self.get(url, first=first, count=count)
        except HubRefusedError as error:
            if error.status == http.HTTPStatus.NOT_FOUND:
                return None
            raise

    def get(self, url: str, *, first: int = 0, count: int | None = None) -> bytes:
        """Body of ``url``, or ``count`` bytes of it from byte ``first`` on.

        Raises:
            HubRefusedError: an HTTP error status.
            UnknownFactError: no answer, or more than 50 MB.
        """
        if count is not None and count > MAX_BODY_BYTES:
            raise _too_large(url)
        headers = {"User-Agent": "vllm-advisor"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if count is not None:
            headers["Range"] = f"bytes={first}-{first + count - 1}"
        try:
            request = urllib.request.Request(url, headers=headers)  # noqa: S310 - the opener has http(s) only
            with self._opener.open(request, timeout=self.timeout) as response:
                if count is None:
                    return _read_all(response, url)
                if response.status != http.HTTPStatus.PARTIAL_CONTENT:  # the range was ignored
                    response.read(first)
                body: bytes = response.read(count)
                return body
        except urllib.error.HTTPError as error:
            with error:
                raise self._refused(error, url) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._unreachable(error, url) from None

    def _refused(self, error: urllib.error.HTTPError, url: str) -> HubRefusedError:
        code = error.headers.get("X-Error-Code", "") if error.headers else ""
        what, fix = _explain(error.code, code, has_token=self.token is not None)
        return HubRefusedError(f"{what} (HTTP {error.code})", where=url, fix=fix, status=error.code)

    def _unreachable(self, error: Exception, url: str) -> UnknownFactError:
        cause = error.reason if isinstance(error, urllib.error.URLError) else error
        fix = OFFLINE_ADVICE
        if isinstance(cause, TimeoutError):
            what = f"no answer within {self.timeout:g} s"
        elif isinstance(cause, ssl.SSLError):
            what = f"the TLS connection failed ({cause.reason or cause})"
            fix = f"behind a proxy that opens TLS, name its CA in SSL_CERT_FILE; {fix}"
        else:
            what = f"cannot reach the Hub ({cause or type(cause).__name__})"
        return UnknownFactError(what, where=url, fix=fix)


def _explain(status: int, error_code: str, *, has_token: bool) -> tuple[str, str]:
    """What a refusal means, and what to do.

    The Hub says 401 for a gated, a private and a missing model alike; X-Error-Code tells more.
    """
    accept = "accept the model's licence on its page"
    if error_code == "RepoNotFound" or (status == http.HTTPStatus.NOT_FOUND and not error_code):
        private = (
            "check that HF_TOKEN may read it" if has_token else "set HF_TOKEN if it is private"
        )
        return "the Hub knows no such model", f"check the id; {private}; {OFFLINE_ADVICE}"
    if error_code == "RevisionNotFound":
        return "the model has no such revision", "name a branch, tag or commit that exists"
    if error_code == "EntryNotFound":
        return (
            "the model has no such file",
            "give a version of the model with config.json (GGUF-only models have none)",
        )
    if status in (http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN):
        if has_token:
            return (
                "the Hub refuses this token: the model is gated or private",
                f"{accept}, and use a token (HF_TOKEN) that may read gated models",
            )
        return (
            "the model is gated or private, or the id is wrong",
            f"set HF_TOKEN and {accept}; {OFFLINE_ADVICE}",
        )
    if status == http.HTTPStatus.TOO_MANY_REQUESTS:
        return "the Hub limits this address", "wait some minutes, or set HF_TOKEN"
    return "the Hub failed", f"try again later; {OFFLINE_ADVICE}"


def _read_all(response: http.client.HTTPResponse, url: str) -> bytes:
    if (response.length or 0) > MAX_BODY_BYTES:
        raise _too_large(url)
    body = response.read(MAX_BODY_BYTES + 1)
    if len(body) > MAX_BODY_BYTES:
        raise _too_large(url)
    if response.length:  # bytes still to come when the connection ended
        raise ConnectionError("the answer was cut off")
    return body


def _too_large(url: str) -> UnknownFactError:
    return UnknownFactError(
        f"the answer is larger than {format_bytes(MAX_BODY_BYTES)}: no metadata of a model",
        where=url,
        fix=OFFLINE_ADVICE,
    )
