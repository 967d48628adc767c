"""Lines of a trace from a file or a stream, with their numbers: gzip, UTF-8, nothing held back."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import BinaryIO

from vllm_advisor.errors import InputError

LONGEST_LINE = 1 << 26  # bytes; a prompt of a million tokens has a thousandth of that in ids
_GZIP_MAGIC = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"


def trace_lines(file: str, stream: BinaryIO | None = None) -> Iterator[str]:
    """Each line with its line break, without a byte order mark.

    Args:
        file: path of the trace; only its name where a stream is given.
        stream: where it is read from instead.

    Raises:
        InputError: it cannot be read, is no UTF-8, or has a line of more than 64 MiB.
    """
    number = 0
    try:
        with _opened(file, stream) as source:
            plain = _unpacked(source)
            while raw := plain.readline(LONGEST_LINE):
                number += 1
                if number == 1:
                    raw = raw.removeprefix(_BOM)
                if len(raw) == LONGEST_LINE and not raw.endswith(b"\n"):
                    raise InputError(
                        f"the line is longer than {LONGEST_LINE:,} bytes",
                        where=f"{file}:{number}",
                        fix="write one request a line, as CSV or JSON",
                    )
                yield raw.decode("utf-8")
    except FileNotFoundError:
        raise InputError(
            "there is no such file", where=file, fix="name a trace, or - for standard input"
        ) from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"this is no UTF-8: byte 0x{error.object[error.start]:02x} at {error.start + 1}",
            where=f"{file}:{number}",
            fix="write the trace as UTF-8",
        ) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            f"the gzip data is damaged: {error}", where=file, fix="fetch the file again"
        ) from None
    except OSError as error:
        raise InputError(
            f"the file cannot be read: {error.strerror or error}", where=file
        ) from None


def _opened(file: str, stream: BinaryIO | None) -> AbstractContextManager[BinaryIO]:
    return Path(file).open("rb") if stream is None else nullcontext(stream)


def _unpacked(source: BinaryIO) -> io.BufferedIOBase:
    """The content of gzip data, told by its first two bytes; all else as it is."""
    start = source.read(len(_GZIP_MAGIC))
    whole = io.BufferedReader(_Rejoined(start, source), 1 << 18)
    return gzip.GzipFile(fileobj=whole) if start == _GZIP_MAGIC else whole


class _Rejoined(io.RawIOBase):
    """A stream and the bytes already taken from its start: a pipe cannot be wound back."""

    def __init__(self, start: bytes, rest: BinaryIO) -> None:
        super().__init__()
        self._start, self._rest = start, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._start or self._rest.read(len(buffer))
        self._start = b""
        buffer[: len(data)] = data
        return len(data)
