"""The measurements of one result file, whose kind is found out by what stands in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from vllm_advisor.errors import InputError
from vllm_advisor.parse.bench.fields import LARGEST, Fields
from vllm_advisor.parse.bench.genai_perf import is_genai_perf, read_genai_perf
from vllm_advisor.parse.bench.guidellm import is_guidellm, read_guidellm
from vllm_advisor.parse.bench.prometheus import is_metrics, read_metrics
from vllm_advisor.parse.bench.vllm_bench import is_vllm_bench, read_vllm_bench
from vllm_advisor.types.measurement import Measured

MAX_BYTES = 256_000_000  # results with --save-detailed hold every token's time
_KNOWN = (
    "give a result of `vllm bench serve --save-result`, a JSON report of guidellm, "
    "profile_export_genai_perf.json, profile_export_aiperf.json, or a snapshot of /metrics"
)
_READERS = (
    (is_vllm_bench, read_vllm_bench),
    (is_guidellm, read_guidellm),
    (is_genai_perf, read_genai_perf),
)


class UnknownResultError(InputError):
    """The file is no result of a benchmark that is known."""


def read_results(content: bytes, file: str, name: str) -> Measured:
    """The measurements of a file.

    Args:
        content: its bytes.
        file: what errors call it.
        name: what its measurements are called.

    Raises:
        UnknownResultError: nothing tells what it is.
        InputError: it is cut off or a figure of it has no meaning.
        NotModelledError: it was measured with something whose speed is not modelled.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UnknownResultError("this is no text", where=file, fix=_KNOWN) from None
    if is_metrics(text):
        return _sound(read_metrics(text, file, name), file)
    if not text.lstrip().startswith(("{", "[")):
        what = "the file is empty" if not text.strip() else "this is no benchmark's result"
        raise UnknownResultError(what, where=file, fix=_KNOWN)
    runs = _objects(text, file)
    found = [
        _read(run, file, f"{name}#{index}" if len(runs) > 1 else name)
        for index, run in enumerate(runs, start=1)
    ]
    return Measured(
        measurements=tuple(m for each in found for m in each.measurements),
        notes=tuple(n for each in found for n in each.notes),
    )


def _read(data: Any, file: str, name: str) -> Measured:
    if isinstance(data, Mapping):
        fields = Fields(file, data)
        for knows, read in _READERS:
            if knows(fields):
                return _sound(read(fields, name), file)
        keys = ", ".join(str(key)[:30] for key in list(data)[:5])
        what = f"no benchmark that is known writes these keys: {keys or 'none'}"
    else:
        what = "the file holds no JSON object"
    raise UnknownResultError(what, where=file, fix=_KNOWN)


def _sound(measured: Measured, file: str) -> Measured:
    for one in measured.measurements:
        for what, tokens in (("prompt", one.prompt_tokens), ("answer", one.output_tokens)):
            if not 1 <= tokens <= LARGEST["tokens"]:
                raise InputError(
                    f"{one.source} has {tokens:g} tokens per {what}, which is no request",
                    where=file,
                    fix="measure again, or leave this file out",
                )
        if one.tpot is None and one.ttft is None and one.tokens_per_second is None:
            raise InputError(
                f"{one.source} has no time per output token, no TTFT and no throughput",
                where=file,
                fix="measure a model that generates, with streaming",
            )
    return measured


def _objects(text: str, file: str) -> list[Any]:
    """JSON values that stand one after the other; a single list is taken apart."""
    decoder, found, at = json.JSONDecoder(), list[Any](), 0
    while True:
        while at < len(text) and text[at].isspace():
            at += 1
        if at == len(text):
            break
        try:
            value, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            raise InputError(
                f"this is not JSON: {error.msg}",
                where=f"{file}:{error.lineno}:{error.colno}",
                fix="the file may be cut off: write it again",
            ) from None
        except (ValueError, RecursionError):
            raise InputError(
                "this JSON holds a number too long or is nested too deep",
                where=file,
                fix="give the file as the benchmark wrote it",
            ) from None
        found.append(value)
    return found[0] if len(found) == 1 and isinstance(found[0], list) else found
