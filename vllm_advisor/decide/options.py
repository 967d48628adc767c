"""The layouts of a deployment, tried and compared: split by length, or one instance for all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from vllm_advisor.decide.candidate import Candidate, Setting, lost_to, one_of_each
from vllm_advisor.decide.layout import Demands, Slot, split, unified
from vllm_advisor.decide.reasons import instead_of
from vllm_advisor.errors import InfeasibleError
from vllm_advisor.types.plan import Alternative

Layout = Callable[[Demands, Setting], tuple[Slot, ...]]
_SHOWN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One layout, tried; ``fails`` is empty when it serves the workload."""

    name: str
    layout: Layout
    slots: tuple[Slot, ...] = ()
    fails: str = ""
    fix: str = ""

    @property
    def gpus(self) -> int:
        """GPUs of all its instances."""
        return sum(slot.chosen.gpus for slot in self.slots)


def tried_options(
    demands: Demands, setting: Setting, price: float | None, budget: float | None
) -> tuple[Option, ...]:
    """Every layout that makes sense, the preferred first.

    A split keeps long prompts out of the steps of short requests: it is preferred when somebody
    waits for the short ones, and when it is no dearer.
    """
    names = "short and long-document instances"
    if not (demands.short and (demands.long or demands.fallbacks)):
        return (_try("one instance", split, demands, setting, price=price, budget=budget),)
    apart = _try(names, split, demands, setting, price=price, budget=budget)
    together = _try(
        "one instance for all classes", unified, demands, setting, price=price, budget=budget
    )
    if apart.fails or together.fails or demands.short_waits or apart.gpus <= together.gpus:
        return (apart, together)
    return (together, apart)


def alternatives(
    options: tuple[Option, ...], chosen: Option | None, price: float | None
) -> tuple[Alternative, ...]:
    """What was computed and not taken: other layouts, then other candidates of each instance."""
    out = [_of_option(o, chosen, price) for o in options if o is not chosen and chosen is not None]
    shown = chosen or next((o for o in options if o.slots), None)
    for slot in shown.slots if shown else ():
        best = slot.search.best
        others = [c for c in slot.search.candidates if c is not best]
        front = {id(c) for c in not_dominated(slot.search.candidates)}
        shown_here = one_of_each(others, _SHOWN)
        shown_here += [c for c in others if id(c) in front and c not in shown_here]
        out += [of_candidate(slot.name, c, best, price, pareto=id(c) in front) for c in shown_here]
    return tuple(out)


def of_candidate(
    subject: str,
    candidate: Candidate,
    best: Candidate | None,
    price: float | None,
    *,
    pareto: bool = False,
) -> Alternative:
    """A candidate as an alternative, with the reason it lost."""
    load = candidate.load
    concurrency = candidate.max_concurrency
    capacity = candidate.figures.capacity if candidate.figures else None
    lost = [
        text
        for text, step in (
            ("precision of the weights", "quantize-weights"),
            ("precision of K and V", "fp8-kv-cache"),
        )
        if step in candidate.steps
    ]
    return Alternative(
        name=candidate.label,
        subject=subject,
        feasible=not candidate.fails,
        gpus=candidate.gpus,
        kv_bytes_per_request=capacity.request_bytes if capacity else None,
        max_concurrency=None if concurrency is None else round(concurrency, 2),
        cost_usd_per_hour=usd(price, candidate.gpus),
        loses=" and ".join(lost) or "nothing",
        why=lost_to(best, candidate) if best else candidate.fails,
        ttft_p95_ms=_slowest(candidate),
        itl_p95_ms=None if load is None else round(load.itl_p95 * 1000, 1),
        pareto=pareto,
    )


def _slowest(candidate: Candidate) -> float | None:
    """TTFT of the class that waits longest, in milliseconds."""
    load = candidate.load
    return None if load is None else round(max(c.ttft_p95 for c in load.classes) * 1000)


def not_dominated(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Of those that serve: none of the others takes no more GPUs and is faster in both times."""
    serving = [c for c in candidates if c.load is not None and not c.fails]

    def key(one: Candidate) -> tuple[float, float, float]:
        load = one.load
        assert load is not None  # noqa: S101 - filtered above
        return (one.gpus, max(c.ttft_p95 for c in load.classes), load.itl_p95)

    def better(one: Candidate, other: Candidate) -> bool:
        mine, theirs = key(one), key(other)
        return mine != theirs and all(a <= b for a, b in zip(mine, theirs, strict=True))

    return [c for c in serving if not any(better(other, c) for other in serving)]


def usd(price: float | None, gpus: int) -> float | None:
    """Cost per hour, or ``None`` when no price is known."""
    return None if price is None else round(price * gpus, 4)


def _of_option(option: Option, chosen: Option | None, price: float | None) -> Alternative:
    why = option.fails
    if not why and chosen is not None:
        if option.gpus < chosen.gpus:
            why = (
                f"{instead_of(option.gpus, chosen.gpus)}, but every step of a long prompt "
                "would delay the short requests somebody waits for"
            )
        else:
            why = instead_of(option.gpus, chosen.gpus)
    return Alternative(
        name=option.name,
        subject="deployment",
        feasible=not option.fails,
        gpus=None if option.fails else option.gpus,
        kv_bytes_per_request=None,
        max_concurrency=None,
        cost_usd_per_hour=None if option.fails else usd(price, option.gpus),
        loses="nothing" if len(option.slots) > 1 else "the short class's protection",
        why=why,
    )


def _try(
    name: str,
    layout: Layout,
    demands: Demands,
    setting: Setting,
    *,
    price: float | None,
    budget: float | None,
) -> Option:
    try:
        slots = layout(demands, setting)
    except InfeasibleError as error:
        return Option(name=name, layout=layout, fails=error.what, fix=error.fix)
    failing = [s for s in slots if s.search.best is None]
    if failing:
        accounts = []
        for slot in failing:
            first = slot.search.candidates[0]
            accounts.append(f"instance {slot.name}, best try {first.label}: {first.fails}")
        return Option(name=name, layout=layout, slots=slots, fails="; ".join(accounts))
    option = Option(name=name, layout=layout, slots=slots)
    limit = min(setting.constraints.max_gpus or setting.node.total_gpus, setting.node.total_gpus)
    cost = usd(price, option.gpus)
    fails = ""
    if option.gpus > limit:
        fails = f"needs {option.gpus} GPUs, {limit} are allowed"
    elif budget is not None and cost is not None and cost > budget:
        fails = f"costs {cost:.2f} USD per hour, the budget is {budget:.2f}"
    return Option(name=name, layout=layout, slots=slots, fails=fails)
