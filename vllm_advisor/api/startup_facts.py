"""What a prediction needs, from a start-up log and from what is given beside it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from packaging.version import InvalidVersion, Version

from vllm_advisor.errors import AdvisorError, InputError
from vllm_advisor.knowledge.engines import load_engine
from vllm_advisor.knowledge.gpus import find_gpu
from vllm_advisor.types.accelerator import Accelerator
from vllm_advisor.types.engine import EngineFacts
from vllm_advisor.types.source import Source, SourceKind
from vllm_advisor.types.startup import StartupLog
from vllm_advisor.units import format_bytes

# Arguments that name the model, not how it is served; a prediction gets the model by itself.
_OF_MODEL = ("model", "model_tag", "served_model_name")
_EXPERTS = re.compile(r"_EP\d+$")  # workers are named so where experts are spread
_LOGGED = ("max_model_len", "max_num_batched_tokens", "gpu_memory_utilization")


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A fact that neither the log nor an option has, and how to give it."""

    fact: str
    reason: str
    fix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StartupFacts:
    """What is known of the server; ``None`` where it is not, and then in ``missing``.

    ``accelerator`` has the memory that the log prints. ``unused`` are arguments of the log that the
    version's parser does not have.
    """

    engine: EngineFacts | None
    logged_version: str | None
    model: str | None
    logged_model: str | None
    accelerator: Accelerator | None
    arguments: dict[str, Any]
    unused: tuple[str, ...]
    missing: tuple[Missing, ...]


def startup_facts(
    log: StartupLog,
    *,
    gpu: str | None,
    model: str | None,
    vllm_version: str | None,
) -> StartupFacts:
    """Bring together what the log says and what is given; what is given wins.

    Raises:
        InputError: the version that is given is none.
        UnknownFactError: the GPU that is given is not known.
    """
    missing: list[Missing] = []
    logged = log.first("version") or log.first("engine_version")
    logged_version = str(logged.value) if logged else None
    engine = _engine(vllm_version, logged_version, missing)
    logged_model = _logged_model(log)
    if model is None and logged_model is None:
        missing.append(
            Missing(fact="model", reason="the log names no model", fix="--model HUB_ID or a folder")
        )
    accelerator = _accelerator(log, gpu, missing)
    arguments, unused = _arguments(log, engine)
    return StartupFacts(
        engine=engine,
        logged_version=logged_version,
        model=model or logged_model,
        logged_model=logged_model,
        accelerator=accelerator,
        arguments=arguments,
        unused=unused,
        missing=tuple(missing),
    )


def argument_notes(log: StartupLog) -> tuple[str, ...]:
    """What a prediction takes for granted because the log does not print every argument."""
    notes = []
    if log.arguments_from == "config":
        notes.append(
            "the log has no line of the arguments: what its engine's config does not say, such as "
            "max_num_seqs, is taken to be the default"
        )
    elif not log.arguments_from:
        notes.append("the log has no line of the arguments: all are taken to be the defaults")
    sizing = [name for name in log.unread if name in ("speculative_config", "hf_overrides")]
    if sizing:
        notes.append(f"{', '.join(sizing)} could not be read and is left out")
    return tuple(notes)


def on_cpu(log: StartupLog) -> bool:
    """Whether the log says that this vLLM ran on a CPU."""
    device = log.first("device") or log.first("platform")
    return device is not None and str(device.value).upper() == "CPU"


def _engine(given: str | None, logged: str | None, missing: list[Missing]) -> EngineFacts | None:
    if given is not None:
        return load_engine(given)
    fix = "--vllm-version VERSION"
    if logged is None:
        missing.append(Missing(fact="vllm_version", reason="the log names no version", fix=fix))
        return None
    try:
        # A build on the way to a release is nearer to that release than to the one before.
        return load_engine(Version(logged).base_version)
    except InvalidVersion:
        reason = f"{logged!r} is no version"
    except AdvisorError as error:
        reason = error.what
    missing.append(Missing(fact="vllm_version", reason=reason, fix=f"{fix} of the nearest release"))
    return None


def _logged_model(log: StartupLog) -> str | None:
    for name in ("model", "model_tag"):
        value = log.arguments.get(name)
        if isinstance(value, str) and value:
            return value
    banner = log.first("banner_model")
    return str(banner.value) if banner else None


def _accelerator(log: StartupLog, gpu: str | None, missing: list[Missing]) -> Accelerator | None:
    total = log.largest("total")
    name = gpu or _named_gpu(log)
    if name is None:
        if on_cpu(log):
            reason = "this vLLM ran on a CPU, and memory is predicted for GPUs"
            missing.append(Missing(fact="gpu", reason=reason, fix="a log of a start on a GPU"))
            return None
        held = total.value if total is not None and isinstance(total.value, int) else None
        size = f", only its memory ({format_bytes(held)})" if held else ""
        missing.append(
            Missing(
                fact="gpu",
                reason=f"the log does not name the GPU{size}",
                fix="--gpu NAME, as nvidia-smi -L prints it or in `vllm-advisor profiles gpus`",
            )
        )
        return None
    found = find_gpu(name)
    if total is None or not isinstance(total.value, int):
        return found
    # The card of the log, not one of its kind: drivers keep different amounts.
    source = Source(SourceKind.MEASURED, f"log:{total.line}")
    if not 0.9 < total.value / found.memory_total < 1.1:
        raise InputError(
            f"the log says {format_bytes(total.value)} per GPU, and {found.name} has "
            f"{format_bytes(found.memory_total)}",
            where="--gpu",
            fix="name the GPU that the log is of",
        )
    return replace(found, memory_total=total.value, memory_total_source=source)


def _named_gpu(log: StartupLog) -> str | None:
    """The GPU that a line names, where it is one that is known."""
    named = log.first("gpu_name")
    if named is None:
        return None
    name = str(named.value).replace("_", " ")
    try:
        find_gpu(name)
    except AdvisorError:
        return None
    return name


def _arguments(
    log: StartupLog, engine: EngineFacts | None
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Arguments the version knows, with what the log says it resolved them to."""
    given = {k: v for k, v in log.arguments.items() if k not in _OF_MODEL and v is not None}
    if log.arguments_from == "config" and any(_EXPERTS.search(f.process) for f in log.facts):
        given["enable_expert_parallel"] = True
    for name in _LOGGED:
        fact = log.first(name)
        if fact is not None and name not in given:
            given[name] = fact.value
    if engine is None:
        return given, ()
    unused = tuple(sorted(name for name in given if name not in engine.flags))
    known = {name: value for name, value in given.items() if name in engine.flags}
    if log.arguments_from == "args":  # every argument, most at its default
        known = {n: v for n, v in known.items() if v != engine.flags[n].default}
        unused = ()
    return known, unused
