"""Where a server is and what goes with every request: base URL, API key, headers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from vllm_advisor.errors import InputError

KEY_VARIABLES = ("VLLM_API_KEY", "OPENAI_API_KEY")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def base_url(text: str, *, option: str = "--base-url") -> str:
    """The URL of the API without a slash at its end; ``/v1`` is added where it has no path.

    Raises:
        InputError: it is no http or https URL, or holds a password, a query or a fragment.
    """
    address = server_url(text, option=option)
    return address if urlsplit(address).path else f"{address}/v1"


def server_url(text: str, *, option: str) -> str:
    """An http or https URL without a slash at its end.

    Raises:
        InputError: it is none, or holds a password, a query or a fragment.
    """
    fix = f"{option} http://localhost:8000"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise InputError(f"this is no URL: {error}", where=option, fix=fix) from None
    if parts.username is not None or parts.password is not None:
        raise InputError(
            "the URL holds a user or a password, which would be printed",
            where=option,
            fix=f"take it out; a key is read from {' or '.join(KEY_VARIABLES)}",
        )
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise InputError(f"{text!r} is no http or https URL", where=option, fix=fix)
    if parts.query or parts.fragment or not text.isprintable() or " " in text:
        raise InputError(
            f"{text!r} has more than a host and a path", where=option, fix=f"leave it out: {fix}"
        )
    if not text.isascii():
        raise InputError(
            f"{text!r} has letters a URL cannot have", where=option, fix="write them %-encoded"
        )
    return text.rstrip("/")


def api_key(variable: str | None) -> str | None:
    """The key in an environment variable; without a name, in the first of the usual ones.

    Raises:
        InputError: the named variable is not set, or its value cannot be sent as a header. The
            message never holds the value.
    """
    if variable is not None and not os.environ.get(variable, "").strip():
        raise InputError(
            f"the environment variable {variable} is not set",
            where="--api-key-env",
            fix=f"export {variable}, or leave the option out",
        )
    for name in (variable,) if variable else KEY_VARIABLES:
        key = os.environ.get(name, "").strip()
        if key:
            if not (key.isascii() and key.isprintable()):
                raise InputError(
                    "the API key has characters that cannot be sent",
                    where=name,
                    fix="a key is plain ASCII on one line",
                )
            return key
    return None


def extra_headers(words: Iterable[str]) -> dict[str, str]:
    """``NAME=VALUE`` words as headers. Values may be secrets and are never in a message.

    Raises:
        InputError: a word is none, or a name or value cannot be sent.
    """
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not _HEADER_NAME.fullmatch(name):
            raise InputError(
                f"{name!r} is no header NAME=VALUE", where="--header", fix="--header x-workload=rag"
            )
        if not (value.isascii() and value.isprintable()):
            raise InputError(
                f"the value of {name} has characters that cannot be sent",
                where="--header",
                fix="a header is plain ASCII on one line",
            )
        found[name.lower()] = value
    return found
