"""Which requests of a workload reach which of the commands under check."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from vllm_advisor.decide.demand import class_demand
from vllm_advisor.decide.tree import class_strategy
from vllm_advisor.errors import InputError
from vllm_advisor.knowledge.workloads import load_traffic
from vllm_advisor.rules.hf_overrides import asked_length
from vllm_advisor.rules.protocol import Subject
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.types.workload import RequestClass, TokenDistribution, Workload
from vllm_advisor.units import ceil_div


def with_traffic(
    subjects: list[Subject],
    workload: str | Path | Workload,
    *,
    classes: Collection[str] | None = None,
    replicas: int | None = None,
) -> list[Subject]:
    """Give each command the classes it serves.

    A class goes to the command with the shortest context that holds its longest request, to the
    longest where none does; commands of equal context share it. Where the application retrieves,
    or keeps only the recent past, the prompt is what is left of it. A command that gets no class
    has none, and says so.

    Args:
        subjects: the commands.
        workload: a workload file, or one with ``classes`` alone.
        classes: names of the classes these commands serve; all unless given.
        replicas: equal copies of every command that share its requests; else those that its
            source states, and 1.

    Raises:
        InputError: the file is wrong, or has no class of a name.
    """
    asked = workload
    if not isinstance(asked, Workload):
        asked = load_traffic(Path(asked), file=str(asked))
    chosen = _named(asked, classes)
    named = [s for s in subjects if asked.model and s.command.model == asked.model] or subjects
    given: dict[int, list[RequestClass]] = {id(s): [] for s in named}
    for request in chosen:
        # By what reaches a server of this model, which may be less than the class's own length.
        reaching = [(s, _reaching(request, asked, s.model)) for s in named]
        takers = _takers([(s, r.max_total_tokens) for s, r in reaching])
        servers = sum(_replicas(taker, replicas) for taker in takers)
        for subject, request_there in reaching:
            if any(subject is taker for taker in takers):
                given[id(subject)].append(_share(request_there, servers))
    return [_with_classes(s, tuple(given.get(id(s), ()))) for s in subjects]


def _named(workload: Workload, names: Collection[str] | None) -> tuple[RequestClass, ...]:
    if names is None:
        return workload.classes
    known = {c.name for c in workload.classes}
    unknown = sorted(set(names) - known)
    if unknown:
        raise InputError(
            f"the workload has no class {', '.join(unknown)}",
            where="--class",
            fix=f"choose from {', '.join(sorted(known))}",
        )
    return tuple(c for c in workload.classes if c.name in names)


def _reaching(request: RequestClass, workload: Workload, model: ModelFacts | None) -> RequestClass:
    """The class as it reaches the server: with passages for a document, or a bounded history."""
    if model is None:
        return request
    demand, _ = class_demand(request, class_strategy(request, workload, model), workload)
    longest = demand.max_tokens - request.output_tokens.max
    if longest == request.prompt_tokens.max:
        return request
    p95 = demand.prompt_tokens
    prompt = TokenDistribution(p50=min(request.prompt_tokens.p50, p95), p95=p95, max=longest)
    return replace(request, prompt_tokens=prompt, shared_prefix_tokens=demand.shared_prefix_tokens)


def _takers(needs: list[tuple[Subject, int]]) -> list[Subject]:
    lengths = [(subject, _length(subject), need) for subject, need in needs]
    holding = [length for _, length, need in lengths if length is None or length >= need]
    known = [length for length in holding if length is not None]
    if known:
        best: int | None = min(known)
    elif holding:
        best = None
    else:
        best = max(length for _, length, _ in lengths if length is not None)
    return [subject for subject, length, _ in lengths if length == best]


def _length(subject: Subject) -> int | None:
    """Tokens of a request at most; ``None`` where only the server will know."""
    if subject.settings is not None:
        return subject.settings.max_model_len
    return asked_length(subject)


def _replicas(subject: Subject, given: int | None) -> int:
    pod = subject.instance.pod if subject.instance else None
    stated = pod.replicas.value if pod and pod.replicas else 1
    return max(1, stated if given is None else given)


def _share(request: RequestClass, servers: int) -> RequestClass:
    """What one of several equal servers gets of a class."""
    if servers == 1:
        return request
    if request.concurrent_requests is not None:
        return replace(request, concurrent_requests=ceil_div(request.concurrent_requests, servers))
    return replace(request, requests_per_second=(request.requests_per_second or 0.0) / servers)


def _with_classes(subject: Subject, classes: tuple[RequestClass, ...]) -> Subject:
    if classes:
        return replace(subject, classes=classes)
    reason = "no class of the workload is for this command"
    return replace(subject, missing={**subject.missing, "workload": reason})
