"""Traces of request lengths: public ones, and a plain form, as CSV or JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

from vllm_advisor.errors import InputError
from vllm_advisor.parse.trace_arrivals import arrival_reader
from vllm_advisor.parse.trace_columns import Names, field_readers, find_columns
from vllm_advisor.parse.trace_lines import trace_lines
from vllm_advisor.parse.trace_rows import trace_rows
from vllm_advisor.types.trace import TracedRequest
from vllm_advisor.units import ceil_div

BLOCK_TOKENS = 512  # of the ids in Mooncake's traces

_Column = tuple[str, str, int, Callable[[Any], Any]]  # field, name, position, how it is read


class Trace:
    """A trace, read row by row while it is iterated over, in the order of the file.

    Args:
        file: path of the trace; only its name where ``stream`` is given.
        stream: binary stream to read it from instead.
        names: which columns hold the lengths, and which classes and routes there are.
        block_tokens: tokens of the prompt that each of its block ids stands for.

    Attributes:
        columns: name of the column for each field, once rows are read.
        ignored: names of the columns that are not understood, once rows are read.
    """

    def __init__(
        self,
        file: str,
        *,
        stream: BinaryIO | None = None,
        names: Names | None = None,
        block_tokens: int = BLOCK_TOKENS,
    ) -> None:
        self.file = file
        self.columns: dict[str, str] = {}
        self.ignored: dict[str, None] = {}
        self._stream = stream
        self._names = names or Names()
        self._readers = field_readers(self._names)
        self._block_tokens = block_tokens

    def __iter__(self) -> Iterator[TracedRequest]:
        """The requests.

        Raises:
            InputError: the file or a row of it cannot be read, or there is no request in it.
        """
        kinds: dict[Sequence[str], list[_Column]] = {}  # of JSON rows: each may have other keys
        header: Sequence[str] | None = None
        columns: list[_Column] = []
        lines = trace_lines(self.file, self._stream)
        for line, named, names, values in trace_rows(self.file, lines):
            if names is not header and names != header:
                header, kind = names, tuple(names)
                if kind not in kinds:
                    kinds[kind] = self._columns(kind, named)
                columns = kinds[kind]
            yield self._request(columns, values, line)
        if header is None:
            raise InputError(
                "there is no request in it",
                where=self.file,
                fix="give CSV with a header, or one JSON object a line",
            )

    def _columns(self, header: Sequence[str], line: int) -> list[_Column]:
        found = find_columns(header, self._names, f"{self.file}:{line}")
        self.columns.update({field: header[at] for field, at in found.items()})
        used = set(found.values())
        self.ignored.update(dict.fromkeys(n for at, n in enumerate(header) if at not in used))
        readers = self._readers
        if "arrival" in found:
            readers = {**readers, "arrival": arrival_reader(header, header[found["arrival"]])}
        return [(field, header[at], at, readers[field]) for field, at in found.items()]

    def _request(self, columns: list[_Column], values: Sequence[Any], line: int) -> TracedRequest:
        fields: dict[str, Any] = {}
        for field, name, at, read in columns:
            try:
                fields[field] = read(values[at])
            except ValueError as error:
                shown = repr(values[at])
                raise self._wrong(
                    f"{name} is {shown[:60]}{'...' if shown[60:] else ''}: {error}",
                    line,
                ) from None
        for field in self._names.required:
            if fields[field] is None:
                raise self._wrong(f"{self.columns[field]} has no value", line)
        request = TracedRequest(**fields)
        if (request.history_tokens or 0) > request.prompt_tokens:
            raise self._wrong(
                f"{self.columns['history_tokens']} is {request.history_tokens:,}, more than the "
                f"prompt of {request.prompt_tokens:,} tokens that it is part of",
                line,
            )
        if request.hash_ids is not None:
            self._check_blocks(request, line)
        return request

    def _check_blocks(self, request: TracedRequest, line: int) -> None:
        """More ids than blocks tell that a block has another size."""
        blocks = ceil_div(request.prompt_tokens, self._block_tokens)
        ids = len(request.hash_ids or ())
        if ids > blocks:
            raise self._wrong(
                f"{self.columns['hash_ids']} has {ids:,} ids; {request.prompt_tokens:,} tokens "
                f"are {blocks:,} blocks of {self._block_tokens:,}",
                line,
                fix="say how many tokens an id stands for: --hash-block-tokens N",
            )

    def _wrong(
        self, what: str, line: int, fix: str = "correct the row, or take it out"
    ) -> InputError:
        return InputError(what, where=f"{self.file}:{line}", fix=fix)
