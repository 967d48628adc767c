"""The lines that the check leaves in vLLM's log."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vllm_advisor.plugin import variables
from vllm_advisor.plugin.expected import Expected
from vllm_advisor.plugin.guard import say

if TYPE_CHECKING:
    from vllm_advisor.api.check_report import CheckReport
    from vllm_advisor.api.sizing import SizeReport
    from vllm_advisor.types.finding import Finding

_OF_CUDA_GRAPHS = ("PRF013", "PRF021")  # rules that say nothing of a CPU
_TRAFFIC = "the traffic is not known"
_MOST = 20  # lines of findings


@dataclass(slots=True, kw_only=True)
class Result:
    """What the check found. ``gaps`` are facts that were missing, by what they are facts of.

    ``gpu`` is the GPU's profile, empty if it is not known.
    """

    report: CheckReport | None = None
    sized: SizeReport | None = None
    gpu: str = ""
    gaps: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What follows from a check: why not to start, and what the engines are to hold."""

    refusal: str | None = None
    predicted: dict[str, Any] | None = None


def tell(result: Result, seconds: float, *, refused: bool, on_cpu: bool) -> Told:
    """Log the result.

    Args:
        result: what the check found.
        seconds: how long it took.
        refused: vLLM does not start anyway: errors alone are told.
        on_cpu: the server runs on a CPU.
    """
    findings = [
        f
        for f in (result.report.findings if result.report else ())
        if f.severity != "info" and not (on_cpu and f.rule in _OF_CUDA_GRAPHS)
    ]
    errors = [f for f in findings if f.severity == "error"]
    shown = errors if refused else findings
    for finding in shown[:_MOST]:
        say(finding.severity.value, _line(finding))
    if len(shown) > _MOST:
        say("warning", f"{len(shown) - _MOST} more findings: vllm-advisor check -- vllm serve ...")
    if refused:
        return Told()
    say("info", _summary(result, seconds, len(errors), len(findings) - len(errors)))
    if result.sized is not None:
        say("info", predicted_line(result.sized))
    expected = predicted(result.sized, result.gpu).to_dict() if result.sized is not None else None
    if errors and variables.mode() == variables.STRICT:
        faults = "; ".join(f"{f.rule} {f.message}" for f in errors)
        refusal = (
            f"vllm-advisor refuses to start this server ({variables.MODE}=strict): {faults}. "
            f"Start it all the same with {variables.MODE}=warn"
        )
        return Told(refusal=refusal, predicted=expected)
    return Told(predicted=expected)


def _line(finding: Finding) -> str:
    page = f"vllm-advisor rules {finding.rule}"
    return f"{finding.rule} {finding.message}; fix: {finding.fix} (why: {page})"


def _summary(result: Result, seconds: float, errors: int, warnings: int) -> str:
    text = f"checked in {seconds:.2f} s: {_count(errors, 'error')}, {_count(warnings, 'warning')}"
    skipped = [
        n for n in (result.report.not_checked if result.report else ()) if _TRAFFIC not in n.reason
    ]
    gaps = ", ".join(f"{what} ({why})" for what, why in result.gaps.items())
    if not skipped and not gaps:
        return text
    missing = f"; not checked: {_count(len(skipped), 'rule')}"
    return f"{text}{missing}; not known: {gaps}" if gaps else f"{text}{missing}"


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def predicted(report: SizeReport, gpu: str = "") -> Expected:
    """The figures of the two numbers that vLLM will log, on a GPU of this profile."""
    capacity = report.figures.capacity
    return Expected(
        by="predicted",
        tokens=capacity.tokens,
        num_gpu_blocks=capacity.num_gpu_blocks,
        max_concurrency=capacity.max_concurrency,
        max_model_len=report.settings.max_model_len,
        gpu=gpu,
    )


def predicted_line(report: SizeReport) -> str:
    """The memory of one GPU, and the two numbers that vLLM will log; sizes in GiB."""
    from vllm_advisor.units import format_bytes, format_tokens

    capacity, budget = report.figures.capacity, report.figures.budget
    parts = []
    if budget is not None:
        split = (
            ("weights", budget.weights),
            ("activations", budget.activations),
            ("CUDA graphs", budget.cuda_graphs),
            ("other", budget.non_torch),
        )
        parts = [f"{name} {format_bytes(int(figure.value))}" for name, figure in split]
    tokens = format_tokens(capacity.tokens)
    parts.append(f"KV cache {format_bytes(capacity.available_bytes)} = {tokens} tokens")
    length = format_tokens(report.settings.max_model_len)
    many = f"{capacity.max_concurrency:.2f} requests of {length} tokens at once"
    unsure = "" if report.confidence == "high" else f"; confidence {report.confidence.value}"
    if any(a.id == "vllm-version-not-compared" for a in report.assumptions):
        unsure += "; this version of vLLM was not compared"
    return f"predicted: {', '.join(parts)}, {many}{unsure}"
