"""A memory calibration from a start-up log: each term as logged, beside what was predicted."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from vllm_advisor.api.sizing import SizeReport
from vllm_advisor.api.startup_comparison import logged_cache
from vllm_advisor.api.startup_facts import StartupFacts, argument_notes
from vllm_advisor.api.startup_terms import Comparison
from vllm_advisor.errors import InputError
from vllm_advisor.knowledge.calibrations import read_calibrations
from vllm_advisor.knowledge.gpus import find_gpu
from vllm_advisor.knowledge.overheads import memory_before_start
from vllm_advisor.types.accelerator import Accelerator
from vllm_advisor.types.sizing import MemoryBudget
from vllm_advisor.types.startup import StartupLog
from vllm_advisor.units import GIB, format_bytes
from vllm_advisor.version import __version__

_ROUNDED = 3 * GIB // 100  # five figures to 0.01 GiB, all rounded the same way
_STEP = GIB // 100
_OTHER_CHECKPOINT = 0.1  # logs are within 0.002 of what is predicted
_OTHERS = 2 * GIB  # more than this before the start: the GPU was not empty
_STATED = {
    "weights": "weights",
    "activations": "activations",
    "CUDA graphs, estimate": "cuda_graphs",
    "activations and CUDA graphs": "activations_and_cuda_graphs",
    "non-torch": "non_torch",
}
_BOTH = "activations_and_cuda_graphs"
_HEAD = """\
# Memory of one server: bytes of its fullest rank, as predicted and as its start-up log says.
# Use: vllm-advisor size ... --calibration THIS_FILE, and the same for plan and estimate.
"""


def startup_calibration(
    source: str, log: StartupLog, facts: StartupFacts, comparison: Comparison
) -> dict[str, Any]:
    """The content of a memory calibration file.

    Args:
        source: name of the log.
        log: what it says.
        facts: what is known of the server.
        comparison: predicted beside logged.

    Raises:
        InputError: there is nothing to compare: no GPU, or a start that ended before vLLM
            measured its memory; or the weights are of another checkpoint.
    """
    report, gpu, engine = comparison.prediction, facts.accelerator, facts.engine
    if report is None or gpu is None or engine is None or report.figures.budget is None:
        raise InputError(
            f"no calibration can be made: {comparison.why_not or 'no memory is predicted'}",
            where=source,
            fix=comparison.fix or "; ".join(missing.fix for missing in facts.missing),
        )
    if report.calibration is not None:
        raise InputError(
            "a calibration is made of the difference from the bundled constants",
            where=source,
            fix="report the log without a calibration",
        )
    terms = _stated_terms(log, comparison)
    notes = [*argument_notes(log), *_check_weights(terms, source)]
    weights = terms.get("weights")
    if weights and abs(weights["logged"] - weights["predicted"]) < _STEP // 2:
        del terms["weights"]  # the same, as far as the log says it
    _add_rest(terms, log, report, report.figures.budget, source)
    if not set(terms) - {"weights"}:
        raise InputError(
            "no calibration can be made: the log does not say what vLLM takes beside the weights",
            where=source,
            fix="a log of a start that came as far as 'Available KV cache memory'",
        )
    notes += _add_total_and_start(terms, log, report, find_gpu(gpu.id))
    made = {
        "schema_version": "1",
        "kind": "memory",
        "advisor_version": __version__,
        "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
        "gpu": gpu.id,
        "gpus": report.settings.gpus,
        "model": report.model,
        "vllm_version": engine.version,
        "engine_args": report.engine_args,
        "log": PurePath(source).name,
        "notes": notes,
        "terms": {name: terms[name] for name in _ORDER if name in terms},
    }
    try:
        read_calibrations(made)  # what would be refused later is refused now
    except InputError as error:
        raise InputError(
            f"no calibration can be made: {error.what}",
            where=source,
            fix="check that --model and --gpu are those of the log",
        ) from None
    return made


_ORDER = ("gpu_memory", "before_start", *_STATED.values(), "rest")


def calibration_text(data: Mapping[str, Any]) -> str:
    """The file of a calibration."""
    from vllm_advisor.report.structured import to_yaml  # noqa: PLC0415 - only to be written

    return _HEAD + to_yaml(data)


def predicted_terms(budget: MemoryBudget) -> dict[str, int]:
    """The terms of a prediction, by the names that they have in the file, in bytes."""
    figures = ("weights", "activations", "cuda_graphs", "non_torch")
    terms = {name: int(getattr(budget, name).value) for name in figures}
    return {**terms, _BOTH: terms["activations"] + terms["cuda_graphs"]}


def _stated_terms(log: StartupLog, comparison: Comparison) -> dict[str, dict[str, Any]]:
    """The terms that lines of the log state; the weights only where they differ."""
    terms: dict[str, dict[str, Any]] = {}
    for term in comparison.terms:
        name, predicted, logged = _STATED.get(term.term), term.predicted, term.logged
        if name is None or not isinstance(logged, int) or not isinstance(predicted, int):
            continue
        if not predicted or (logged < 0 and name != "non_torch"):
            continue
        terms[name] = {"predicted": predicted, "logged": logged, "line": term.line}
    budget = comparison.prediction.figures.budget if comparison.prediction else None
    graphs = log.largest("cuda_graphs_estimate")
    if _BOTH not in terms or budget is None or graphs is None:
        return terms
    split, both, size = predicted_terms(budget), terms[_BOTH], int(graphs.value)
    if split["cuda_graphs"] and 0 <= size <= both["logged"]:
        parts = (("activations", both["logged"] - size, both["line"]),)
        for name, logged, line in (*parts, ("cuda_graphs", size, graphs.line)):
            terms[name] = {"predicted": split[name], "logged": logged, "line": line}
        del terms[_BOTH]
    return terms


def _check_weights(terms: dict[str, dict[str, Any]], source: str) -> list[str]:
    """Whether they are of the model that is predicted; returns what is to be said.

    Raises:
        InputError: they are of another checkpoint, and all differences with them.
    """
    weights = terms.get("weights")
    if weights is None:
        return ["the log does not say the weights: they are as predicted"]
    if abs(weights["logged"] - weights["predicted"]) > _OTHER_CHECKPOINT * weights["predicted"]:
        raise InputError(
            f"no calibration can be made: {format_bytes(weights['logged'])} of weights were "
            f"loaded, and {format_bytes(weights['predicted'])} are predicted",
            where=f"{source}:{weights['line']}",
            fix="name the checkpoint of the log with --model",
        )
    return []


def _add_rest(
    terms: dict[str, dict[str, Any]],
    log: StartupLog,
    report: SizeReport,
    budget: MemoryBudget,
    source: str,
) -> None:
    """What the logged KV cache leaves for the terms without a line.

    Where that is one term alone, it is known as well as if it had a line. Where every term has
    one, only what is more than their rounding is left.

    Raises:
        InputError: the cache is larger than the weights leave.
    """
    cache, line = logged_cache(log)
    given = report.settings.kv_cache_memory_bytes is not None
    if not cache or given or not report.figures.capacity.groups:
        return
    predicted = predicted_terms(budget)
    stated = {*terms, *(("activations", "cuda_graphs") if _BOTH in terms else ())}
    beside = ("activations", "cuda_graphs", "non_torch")
    unsaid = [name for name in beside if name not in stated and predicted[name]]
    said = {"weights": predicted["weights"]} | {n: term["logged"] for n, term in terms.items()}
    rest = int(budget.requested.value) - cache - sum(said.values())
    if unsaid and rest < -_ROUNDED:
        raise InputError(
            f"no calibration can be made: the logged KV cache is {format_bytes(-rest)} larger than "
            "what else was logged leaves it",
            where=f"{source}:{line}",
            fix="name the checkpoint of the log (--model), and the GPU that it is of",
        )
    found = {
        "predicted": sum(predicted[name] for name in unsaid),
        "logged": max(0, rest) if unsaid else rest,
        "line": line,
    }
    if len(unsaid) == 1:
        terms[unsaid[0]] = found
    elif unsaid or abs(rest) > _ROUNDED:
        terms["rest"] = {**found, "of": unsaid}


def _add_total_and_start(
    terms: dict[str, dict[str, Any]], log: StartupLog, report: SizeReport, gpu: Accelerator
) -> list[str]:
    """The memory of the GPU and what was gone before the start; returns what is to be said."""
    total, free = log.largest("total"), log.smallest("free_at_start")
    if total is None:
        return []
    terms["gpu_memory"] = {
        "predicted": gpu.memory_total,
        "logged": total.value,
        "line": total.line,
    }
    if free is None or any(refusal.kind == "memory-not-free" for refusal in log.refusals):
        return []
    gone = int(total.value) - int(free.value)
    usual = memory_before_start(
        gpu.id,
        tensor_parallel=report.settings.tensor_parallel_size > 1,
        unified_memory=gpu.unified_memory,
    ).size_bytes
    if not 0 <= gone <= usual + _OTHERS:
        said = f"{format_bytes(gone)} of the GPU were gone before the start"
        return [f"{said}: something else may have used it, and this is left out"]
    terms["before_start"] = {"predicted": usual, "logged": gone, "line": free.line}
    return []
