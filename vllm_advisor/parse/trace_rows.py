"""Rows of a trace as CSV or JSON has them, told apart by what stands first."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from vllm_advisor.errors import InputError

_MOST_ARRAY_CHARACTERS = 1 << 29
_BETWEEN = re.compile(r"[\s,]*")

# Line of the row, line of the names, names of the columns, values.
Row = tuple[int, int, Sequence[str], Sequence[Any]]


def trace_rows(file: str, lines: Iterable[str]) -> Iterator[Row]:
    """Each row with the line it starts on; rows of CSV share one object as their names.

    Raises:
        InputError: a row is no CSV, no JSON, or no object.
    """
    numbered = enumerate(lines, 1)
    for number, line in numbered:
        start = line.lstrip()
        if not start:
            continue
        rest = (line for _, line in numbered)
        if start[0] == "[":
            return _array_rows(file, number, chain([line], rest))
        lines = chain([line], rest)
        if start[0] == "{":
            return _object_rows(file, number, lines)
        return _csv_rows(file, number, lines)
    return iter(())


def _csv_rows(file: str, first: int, lines: Iterable[str]) -> Iterator[Row]:
    reader = csv.reader(lines, strict=True, skipinitialspace=True)
    names: list[str] | None = None
    number = named = first
    try:
        for cells in reader:
            if not "".join(cells).strip() and len(cells) < 2:
                pass  # a blank line
            elif names is None:
                names, named = cells, number
            elif len(cells) != len(names):
                raise InputError(
                    f"the row has {len(cells)} values for {len(names)} columns",
                    where=f"{file}:{number}",
                    fix="give each column a value, or leave it empty between commas",
                )
            else:
                yield number, named, names, cells
            number = first + reader.line_num
    except csv.Error as error:
        raise InputError(
            f"this is no CSV: {error}", where=f"{file}:{number}", fix="check the quotes"
        ) from None


def _object_rows(file: str, first: int, lines: Iterable[str]) -> Iterator[Row]:
    decode = json.JSONDecoder().raw_decode
    for number, line in enumerate(lines, first):
        text = line.strip()
        if not text:
            continue
        try:
            row, end = decode(text)
        except json.JSONDecodeError as error:
            column = line.index(text) + error.pos + 1
            raise _no_json(error.msg, f"{file}:{number}:{column}") from None
        except (ValueError, RecursionError) as error:
            raise _no_json(str(error), f"{file}:{number}") from None
        if end != len(text):
            column = line.index(text) + end + 1
            raise _no_json("something follows the object", f"{file}:{number}:{column}")
        if type(row) is not dict:
            raise _no_object(f"{file}:{number}")
        yield number, number, tuple(row), tuple(row.values())


def _array_rows(file: str, first: int, lines: Iterable[str]) -> Iterator[Row]:
    """The objects of one array, which is held as text: it may stand on a single line."""
    text = _array_text(file, lines)
    decoder = json.JSONDecoder()
    at = text.index("[") + 1
    number, counted = first, 0
    comma = ""  # what has to stand before the next object
    while True:
        gap = _BETWEEN.match(text, at)
        end = gap.end() if gap else at
        between, at = "".join(text[at:end].split()), end
        number, counted = number + text.count("\n", counted, at), at
        where = f"{file}:{number}"
        if at == len(text):
            raise _no_json("the array does not end", where)
        closed = text[at] == "]"
        if between != ("" if closed else comma):
            raise _no_json("one comma stands between two objects, and nowhere else", where)
        if closed:
            break
        try:
            row, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            line = number + text.count("\n", counted, error.pos)
            raise _no_json(error.msg, f"{file}:{line}") from None
        except (ValueError, RecursionError) as error:
            raise _no_json(str(error), where) from None
        if type(row) is not dict:
            raise _no_object(where)
        comma = ","
        yield number, number, tuple(row), tuple(row.values())
    if text[at + 1 :].strip():
        raise _no_json("something follows the array", where)


def _array_text(file: str, lines: Iterable[str]) -> str:
    parts: list[str] = []
    size = 0
    for line in lines:
        size += len(line)
        if size > _MOST_ARRAY_CHARACTERS:
            raise InputError(
                f"the array has more than {_MOST_ARRAY_CHARACTERS:,} characters",
                where=file,
                fix="write one object a line: jq -c '.[]'",
            )
        parts.append(line)
    return "".join(parts)


def _no_object(where: str) -> InputError:
    return InputError("the row is no JSON object", where=where, fix='write {"prompt_tokens": 374}')


def _no_json(what: str, where: str) -> InputError:
    return InputError(f"this is no JSON: {what}", where=where, fix="write one object a line")
