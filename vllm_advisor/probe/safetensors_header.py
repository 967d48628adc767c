"""The header of a safetensors file: which tensors it holds, how large they are, in what dtype.

Format (docs:https://github.com/huggingface/safetensors#format): 8 bytes, the header's length as
an unsigned little-endian integer; then the header, a JSON object of ``name -> {"dtype", "shape",
"data_offsets": [begin, end]}`` with offsets into the data that follows. No tensor is ever read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vllm_advisor.errors import InputError

LENGTH_BYTES = 8
MAX_HEADER_BYTES = 100_000_000  # the format's own limit

_BITS = {
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2", "F8_E8M0"), 8),
    **dict.fromkeys(("U16", "I16", "F16", "BF16"), 16),
    **dict.fromkeys(("U32", "I32", "F32"), 32),
    **dict.fromkeys(("U64", "I64", "F64", "C64"), 64),
}
_LFS_POINTER = b"version "  # first bytes of a git-lfs pointer file
_AGAIN = "download the file again"


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorEntry:
    """One tensor of the header; ``begin`` and ``end`` are offsets into the data, in bytes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def size(self) -> int:
        """Bytes of the tensor."""
        return self.end - self.begin


@dataclass(frozen=True, slots=True, kw_only=True)
class SafetensorsFile:
    """What one file's header says; ``missing_bytes`` of the data are not there (cut-off copy)."""

    entries: tuple[TensorEntry, ...]
    missing_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSizes:
    """Bytes by tensor name and by dtype, over one file or over all shards."""

    tensor_bytes: dict[str, int]
    bytes_by_dtype: dict[str, int]

    @property
    def total(self) -> int:
        """Bytes of all tensors."""
        return sum(self.tensor_bytes.values())


def header_length(prefix: bytes, *, where: str, file_size: int | None = None) -> int:
    """Length in bytes of the header, from the first 8 bytes of the file.

    Raises:
        InputError: too few bytes, a git-lfs pointer, or a length that no header has.
    """
    if prefix.startswith(_LFS_POINTER):
        raise InputError(
            "the file is a git-lfs pointer, not the weights",
            where=where,
            fix="run `git lfs pull` in the model's folder",
        )
    if len(prefix) < LENGTH_BYTES:
        raise InputError(
            f"the file ends after {len(prefix)} bytes: no safetensors header",
            where=where,
            fix=_AGAIN,
        )
    length = int.from_bytes(prefix[:LENGTH_BYTES], "little")
    if length < len("{}") or length > MAX_HEADER_BYTES:
        raise InputError(
            f"{length} bytes is no length of a safetensors header (2 to {MAX_HEADER_BYTES})",
            where=where,
            fix=f"the file is broken or no safetensors file; {_AGAIN}",
        )
    if file_size is not None and LENGTH_BYTES + length > file_size:
        raise InputError(
            f"the header should be {length} bytes long and the file has only {file_size}",
            where=where,
            fix=f"the download was cut off; {_AGAIN}",
        )
    return length


def parse_header(header: bytes, *, where: str) -> tuple[TensorEntry, ...]:
    """Tensors of a header in the file's order.

    Raises:
        InputError: no JSON object, or an entry whose dtype, shape and offsets disagree.
    """
    try:
        table = json.loads(header)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"the safetensors header is no JSON ({error})", where=where, fix=_AGAIN
        ) from None
    if not isinstance(table, dict):
        raise InputError("the safetensors header is no JSON object", where=where, fix=_AGAIN)
    return tuple(
        _entry(name, fields, where) for name, fields in table.items() if name != "__metadata__"
    )


def _entry(name: str, fields: Any, where: str) -> TensorEntry:
    match fields:
        case {"dtype": str(dtype), "shape": list(shape), "data_offsets": [int(begin), int(end)]}:
            pass
        case _:
            raise InputError(
                f"tensor {name!r} lacks dtype, shape or data_offsets", where=where, fix=_AGAIN
            )
    if begin < 0 or end < begin or not all(isinstance(n, int) and n >= 0 for n in shape):
        raise InputError(
            f"tensor {name!r} has impossible offsets or shape", where=where, fix=_AGAIN
        )
    bits = _BITS.get(dtype)  # a dtype newer than this table is believed
    if bits is not None and math.prod(shape) * bits != (end - begin) * 8:
        raise InputError(
            f"tensor {name!r}: {dtype} {shape} does not take {end - begin} bytes",
            where=where,
            fix=_AGAIN,
        )
    return TensorEntry(name=name, dtype=dtype, shape=tuple(shape), begin=begin, end=end)


def read_header(path: Path) -> SafetensorsFile:
    """Tensors of a safetensors file, from its first bytes.

    Raises:
        InputError: the file cannot be read or its header is broken.
    """
    where = str(path)
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            length = header_length(file.read(LENGTH_BYTES), where=where, file_size=size)
            entries = parse_header(file.read(length), where=where)
    except OSError as error:
        raise InputError(
            f"cannot read the weights ({error.strerror})",
            where=where,
            fix="check that the file exists and may be read",
        ) from None
    promised = LENGTH_BYTES + length + max((entry.end for entry in entries), default=0)
    return SafetensorsFile(entries=entries, missing_bytes=max(0, promised - size))


def sum_tensors(entries: Iterable[TensorEntry]) -> TensorSizes:
    """Bytes by tensor and by dtype; a tensor two shards hold counts once, as vLLM loads it."""
    by_name = {entry.name: entry for entry in entries}
    by_dtype: dict[str, int] = {}
    for entry in by_name.values():
        by_dtype[entry.dtype] = by_dtype.get(entry.dtype, 0) + entry.size
    return TensorSizes(
        tensor_bytes={name: entry.size for name, entry in by_name.items()},
        bytes_by_dtype=by_dtype,
    )
