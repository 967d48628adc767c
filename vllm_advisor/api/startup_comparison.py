"""The memory and the KV cache of a start: predicted beside logged, term by term."""

from __future__ import annotations

import math
from typing import Any

from packaging.version import Version

from vllm_advisor.api.models import find_model
from vllm_advisor.api.sizing import SizeReport, size
from vllm_advisor.api.startup_facts import StartupFacts, on_cpu
from vllm_advisor.api.startup_terms import ComparedTerm, Comparison
from vllm_advisor.errors import AdvisorError, InputError, NotModelledError
from vllm_advisor.types.model import KVCacheSpecKind
from vllm_advisor.types.sizing import Figure, MemoryBudget
from vllm_advisor.types.startup import LogFact, LogRefusal, StartupLog
from vllm_advisor.units import GIB

# Before 0.21 the line of models with windows counted something else (vllm-project/vllm#40691).
_ONE_MEANING = (0, 21)
_CPU_BLOCK_TOKENS = 128
_CPU_BATCHED_TOKENS = 2048  # for each rank
_LATENT = (KVCacheSpecKind.MLA_ATTENTION, KVCacheSpecKind.SLIDING_WINDOW_MLA)
_LATENT_BLOCKS = {"CPU_MLA": 16, "AMX_MLA": None}  # tokens; None: as for any model


def compare(
    log: StartupLog, facts: StartupFacts, *, gpu_count: int, calibration: Any = None
) -> Comparison:
    """Predict what the log's arguments give and put the logged figures beside it.

    Without a GPU the KV cache's tokens are predicted from the memory that the log leaves it. With a
    calibration there is a prediction of the memory or an error.

    Raises:
        InputError: the calibration is of another server, or there is nothing to hold it against.
    """
    if calibration is not None and (facts.missing or facts.accelerator is None):
        raise InputError(
            f"there is no prediction to calibrate: {'; '.join(m.reason for m in facts.missing)}",
            where="--calibration",
            fix="; ".join(m.fix for m in facts.missing),
        )
    if facts.engine is None or facts.model is None:
        return Comparison(why_not="; ".join(m.reason for m in facts.missing))
    cache, line = logged_cache(log)
    parallel = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")
    stated = log.arguments_from != "" or any(facts.arguments.get(n) for n in parallel)
    gpus = 1 if stated else gpu_count
    report: SizeReport | None = None
    why, fix = "; ".join(m.reason for m in facts.missing), ""
    terms: list[ComparedTerm] = []
    if facts.accelerator is not None:
        try:
            report = _size(facts, gpus=gpus, calibration=calibration)
        except AdvisorError as error:
            if calibration is not None:
                raise
            why, fix = error.what, error.fix
            if error.fix == "" and facts.model == facts.logged_model:
                fix = "give --model HUB_ID or a folder with config.json"
        else:
            why = ""
            terms += _terms(log, report, facts)
    if cache > 0:
        try:
            layout = _size(
                facts, gpus=gpus, kv_cache_memory_bytes=cache, **_of_platform(log, facts)
            )
        except AdvisorError as error:
            why, fix = why or error.what, fix or error.fix
        else:
            note = f"from the {cache / GIB:.2f} GiB of line {line}"
            terms += _cache_terms(log, layout, facts, suffix=", of the logged memory", note=note)
            terms += _refused_terms(log, layout)
    return Comparison(terms=tuple(terms), prediction=report, why_not=why, fix=fix)


def _of_platform(log: StartupLog, facts: StartupFacts) -> dict[str, Any]:
    """What vLLM takes on a CPU where a GPU has another default; nothing for a GPU.

    Source: vllm:0.32.0:vllm/platforms/cpu.py#check_and_update_config and
    vllm/engine/arg_utils.py#get_batch_defaults.

    Raises:
        AdvisorError: the model is not known, or its blocks depend on what the log does not say.
    """
    if not on_cpu(log) or facts.model is None or facts.engine is None:
        return {}
    given = facts.arguments
    found: dict[str, Any] = {}
    if "async_scheduling" in facts.engine.flags:
        found["async_scheduling"] = False  # whatever is asked for
    if given.get("max_num_batched_tokens") is None:
        ranks = (given.get(f"{name}_parallel_size") or 1 for name in ("tensor", "pipeline"))
        found["max_num_batched_tokens"] = _CPU_BATCHED_TOKENS * math.prod(ranks)
    if any(spec.kind in _LATENT for spec in find_model(facts.model).cache_specs):
        backend = log.first("attention_backend")
        if backend is None or backend.value not in _LATENT_BLOCKS:
            raise NotModelledError(
                "MLA takes blocks of 16 tokens on a CPU without AMX and others with it, and the "
                "log does not name its backend",
                fix="a log that has the line 'Using CPU_MLA backend' or 'Using AMX_MLA backend'",
            )
        block = _LATENT_BLOCKS[str(backend.value)]
        if block is not None:
            return {**found, "block_size": block}  # whatever is asked for
    if given.get("block_size") is None:
        found["block_size"] = _CPU_BLOCK_TOKENS
    return found


def logged_cache(log: StartupLog) -> tuple[int, int]:
    """Bytes of the KV cache and the line that says so; 0 where none does."""
    fact = log.smallest("kv_cache_in_use") or log.smallest("kv_cache")
    if fact is not None and isinstance(fact.value, int):
        return fact.value, fact.line
    for refusal in log.refusals:
        if "available" in refusal.figures:
            return gib_figure(refusal, "available"), refusal.line
    return 0, 0


def gib_figure(refusal: LogRefusal, name: str) -> int:
    """A figure of a refusal that is printed in GiB, in bytes."""
    return round(float(refusal.figures[name].replace(",", "")) * GIB)


def _refused_terms(log: StartupLog, report: SizeReport) -> list[ComparedTerm]:
    """What a refusal says of one request, and of the longest that would fit."""
    capacity = report.figures.capacity
    terms = []
    for refusal in log.refusals:
        if "needed" not in refusal.figures:
            continue
        if int(refusal.figures["length"]) != capacity.max_model_len:
            continue
        terms.append(
            ComparedTerm(
                term="KV cache of one request",
                unit="bytes",
                predicted=capacity.request_bytes,
                logged=gib_figure(refusal, "needed"),
                line=refusal.line,
                note=f"of {capacity.max_model_len:,} tokens",
            )
        )
        if "longest" in refusal.figures:
            terms.append(
                ComparedTerm(
                    term="longest request, of the logged memory",
                    unit="tokens",
                    predicted=capacity.estimated_max_model_len,
                    logged=int(refusal.figures["longest"]),
                    line=refusal.line,
                )
            )
    return terms


def _size(facts: StartupFacts, *, gpus: int, **more: Any) -> SizeReport:
    if facts.model is None or facts.engine is None:
        raise ValueError("there is nothing to size")
    return size(
        facts.model,
        gpu=facts.accelerator,
        gpu_count=gpus,
        vllm_version=facts.engine.version,
        **{**facts.arguments, **more},
    )


def _terms(log: StartupLog, report: SizeReport, facts: StartupFacts) -> list[ComparedTerm]:
    budget = report.figures.budget
    terms: list[ComparedTerm] = []
    if budget is not None:
        terms += _memory_terms(log, budget)
    terms += _cache_terms(log, report, facts)
    backend = log.first("attention_backend")
    if backend is not None:
        terms.append(
            ComparedTerm(
                term="attention backend",
                unit="text",
                predicted=report.figures.attention_backend,
                logged=_backend(str(backend.value)),
                line=backend.line,
            )
        )
    return terms


def _memory_terms(log: StartupLog, budget: MemoryBudget) -> list[ComparedTerm]:
    weights, graphs = log.largest("weights"), log.largest("cuda_graphs_estimate")
    terms = [
        _bytes("requested", budget.requested, log.largest("requested")),
        _bytes("weights", budget.weights, weights),
    ]
    together = log.largest("activations_and_graphs")
    alone = log.largest("activations")
    if together is not None and alone is None:
        both = int(budget.activations.value) + int(budget.cuda_graphs.value)
        terms.append(
            ComparedTerm(
                term="activations and CUDA graphs",
                unit="bytes",
                predicted=both,
                logged=_amount(together),
                line=together.line,
                note="this version's peak activation holds the estimate for CUDA graphs",
            )
        )
    else:
        terms.append(_bytes("activations", budget.activations, alone))
        if budget.cuda_graphs.value or graphs is None:
            terms.append(_bytes("CUDA graphs, estimate", budget.cuda_graphs, graphs))
    terms.append(_non_torch(log, budget, weights))
    terms.append(_bytes("KV cache", budget.kv_cache, log.smallest("kv_cache")))
    return terms


def _non_torch(log: StartupLog, budget: MemoryBudget, weights: LogFact | None) -> ComparedTerm:
    logged, consumed = log.largest("non_torch"), log.largest("consumed")
    if logged is None and consumed is not None and weights is not None:
        return ComparedTerm(
            term="non-torch",
            unit="bytes",
            predicted=int(budget.non_torch.value),
            logged=_amount(consumed) - _amount(weights),
            line=consumed.line,
            note=f"consumed memory less the weights of line {weights.line}",
        )
    return _bytes("non-torch", budget.non_torch, logged)


def _cache_terms(
    log: StartupLog, report: SizeReport, facts: StartupFacts, *, suffix: str = "", note: str = ""
) -> list[ComparedTerm]:
    capacity = report.figures.capacity
    tokens, concurrency = log.smallest("kv_tokens"), log.smallest("max_concurrency")
    length = log.first("concurrency_tokens")
    if not capacity.groups:
        return []
    other = tokens is not None and len(capacity.groups) > 1 and _older(facts)
    terms = []
    if tokens is not None or not suffix:
        counted = "vLLM before 0.21 counts tokens of several kinds of cache otherwise"
        terms.append(
            ComparedTerm(
                term=f"KV cache tokens{suffix}",
                unit="tokens",
                predicted=capacity.tokens,
                logged=None if other else _amount(tokens),
                line=tokens.line if tokens else None,
                note=counted if other else note,
            )
        )
    if suffix and tokens is not None and not other:
        return terms  # the concurrency is the same ratio
    same = length is None or _amount(length) == capacity.max_model_len
    if (concurrency is not None or not suffix) and same:
        terms.append(
            ComparedTerm(
                term=f"maximum concurrency{suffix}",
                unit="requests",
                predicted=round(capacity.max_concurrency, 2),
                logged=_amount(concurrency),
                line=concurrency.line if concurrency else None,
                note=f"of {capacity.max_model_len:,} tokens",
            )
        )
    return terms


def _older(facts: StartupFacts) -> bool:
    if facts.engine is None:
        return False
    return Version(facts.engine.version).release < _ONE_MEANING


def _bytes(term: str, figure: Figure, fact: LogFact | None) -> ComparedTerm:
    return ComparedTerm(
        term=term,
        unit="bytes",
        predicted=int(figure.value),
        logged=_amount(fact),
        line=fact.line if fact else None,
    )


def _amount(fact: LogFact | None) -> Any:
    return fact.value if fact is not None else None


def _backend(logged: str) -> str:
    """The name as newer versions print it: 0.8 to 0.14 write ``Flash Attention``."""
    known = {"Flash Attention": "FLASH_ATTN", "FlashInfer": "FLASHINFER", "Triton": "TRITON_ATTN"}
    return known.get(logged, logged)
