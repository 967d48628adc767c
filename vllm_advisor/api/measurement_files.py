"""Files and folders of measurements, read one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from vllm_advisor.errors import InputError
from vllm_advisor.parse.bench.results import MAX_BYTES, UnknownResultError, read_results
from vllm_advisor.types.measurement import Measured, Measurement
from vllm_advisor.visible import visible

_SUFFIXES = (".json", ".jsonl", ".txt", ".prom", ".metrics")


def read_measurements(paths: Sequence[str | Path]) -> Measured:
    """The measurements of files, and of the files in folders.

    A file that is named has to be a result; one that only lies in a folder is left out with a note
    where it is none.

    Args:
        paths: files, or folders of them.

    Raises:
        InputError: a file cannot be read or is wrong, or there is no measurement in any of them.
        NotModelledError: one was measured with something whose speed is not modelled.
    """
    if not paths:
        raise InputError("there is no file of measurements", where="FILES", fix="name one or more")
    found: list[Measurement] = []
    notes: list[str] = []
    read: set[Path] = set()
    for given in map(Path, paths):
        for path in _files(given):
            if path.resolve() in read:
                continue
            read.add(path.resolve())
            try:
                measured = read_results(_content(path), str(path), visible(path.name))
            except UnknownResultError as error:
                if path == given:
                    raise
                notes.append(f"{path.name} is left out: {error.what}")
                continue
            found += measured.measurements
            notes += measured.notes
    if not found:
        raise InputError(
            f"there is no measurement in them: {'; '.join(notes)}"
            if notes
            else f"no file there ends in {', '.join(_SUFFIXES)}",
            where=", ".join(str(path) for path in paths),
            fix="measure a steady load: vllm bench serve --max-concurrency 8 --num-prompts 80 "
            "--save-result",
        )
    return Measured(measurements=tuple(found), notes=tuple(notes))


def _files(given: Path) -> Iterator[Path]:
    if not given.is_dir():
        yield given
        return
    for path in sorted(given.rglob("*")):
        if path.suffix in _SUFFIXES and path.is_file():
            yield path


def _content(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(
                f"the file has more than {MAX_BYTES // 1_000_000} MB",
                where=str(path),
                fix="measure without --save-detailed",
            )
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise InputError(
            f"cannot read: {getattr(error, 'strerror', None) or error}",
            where=str(path),
            fix="name a file or folder that is there",
        ) from None
