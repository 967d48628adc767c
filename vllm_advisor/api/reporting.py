"""report_startup(): what a start-up log says, beside what was to be expected."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vllm_advisor.api.startup_advice import ExplainedRefusal, explain_refusals
from vllm_advisor.api.startup_calibration import calibration_text, startup_calibration
from vllm_advisor.api.startup_comparison import compare
from vllm_advisor.api.startup_facts import StartupFacts, argument_notes, startup_facts
from vllm_advisor.api.startup_findings import findings_of
from vllm_advisor.api.startup_terms import Comparison
from vllm_advisor.api.writing import write_text
from vllm_advisor.errors import InputError
from vllm_advisor.parse.startup_log import read_startup_log
from vllm_advisor.types.finding import Finding
from vllm_advisor.types.startup import StartupLog

if TYPE_CHECKING:
    from vllm_advisor.knowledge.calibrations import Calibration

_READS = "a file with what vLLM printed while it started, or - for standard input"


@dataclass(frozen=True, slots=True, kw_only=True)
class StartupReport:
    """The answer of :func:`report_startup`; ``to_dict()`` is what ``report --format json`` prints.

    ``findings`` are the errors and warnings of ``check`` for the command of the log.
    """

    source: str
    log: StartupLog
    facts: StartupFacts
    comparison: Comparison
    refusals: tuple[ExplainedRefusal, ...]
    findings: tuple[Finding, ...]

    @property
    def refused(self) -> bool:
        """The log ends with a refusal; no server came up."""
        return bool(self.refusals) and not self.log.started

    @property
    def outcome(self) -> str:
        """``started``, ``refused`` or ``not said`` (the log ends before either)."""
        return "refused" if self.refused else "started" if self.log.started else "not said"

    @property
    def assumptions(self) -> list[str]:
        """What the comparison takes for true; nothing where there is none."""
        prediction = self.comparison.prediction
        sized = [a.text for a in prediction.assumptions] if prediction else []
        return [*argument_notes(self.log), *sized] if self.comparison.terms else []

    def calibration(self) -> dict[str, Any]:
        """What the log says of the memory, for ``size``, ``plan`` and ``estimate``.

        Raises:
            InputError: there is nothing to compare: no GPU, or a start that ended before vLLM
                measured its memory.
        """
        return startup_calibration(self.source, self.log, self.facts, self.comparison)

    def to_dict(self) -> dict[str, Any]:
        """Plain data; keys are only ever added (see ``schema_version``)."""
        log, facts, prediction = self.log, self.facts, self.comparison.prediction
        return {
            "schema_version": "1",
            "source": self.source,
            "outcome": self.outcome,
            "model": facts.model,
            "gpu": facts.accelerator.id if facts.accelerator else None,
            "vllm_version": facts.engine.version if facts.engine else None,
            "logged": {
                "version": facts.logged_version,
                "model": facts.logged_model,
                "lines": log.lines,
                "first_line": log.first_line,
                "starts": log.starts,
                "arguments_from": log.arguments_from or None,
                "arguments_line": log.arguments_line,
                "arguments": dict(log.arguments),
                "arguments_not_shown": list(log.unread),
                "facts": [
                    {
                        "id": fact.id,
                        "value": fact.value,
                        "unit": fact.unit,
                        "line": fact.line,
                        "process": fact.process,
                    }
                    for fact in log.facts
                ],
                "warnings": [
                    {"text": w.text, "line": w.line, "count": w.count} for w in log.warnings
                ],
            },
            "engine_args": facts.arguments,
            "engine_args_unused": list(facts.unused),
            "comparison": [term.to_dict() for term in self.comparison.terms],
            "comparison_summary": self.comparison.summary or None,
            "not_compared": self.comparison.why_not or None,
            "not_compared_fix": self.comparison.fix or None,
            "missing": [{"fact": m.fact, "reason": m.reason, "fix": m.fix} for m in facts.missing],
            "refusals": [one.to_dict() for one in self.refusals],
            "findings": [
                {"rule": f.rule, "severity": f.severity.value, "message": f.message, "fix": f.fix}
                for f in self.findings
            ],
            "confidence": prediction.confidence.value if prediction else None,
            "assumptions": self.assumptions,
        }


def report_startup(
    source: str | Path,
    *,
    lines: Iterable[str] | None = None,
    gpu: str | None = None,
    gpu_count: int = 1,
    model: str | None = None,
    vllm_version: str | None = None,
    calibration: Calibration | Sequence[Calibration] | None = None,
) -> StartupReport:
    """Read a start-up log, compare it with a prediction and explain why vLLM did not start.

    Args:
        source: path of the log; only its name where ``lines`` is given.
        lines: the lines of the log.
        gpu: GPU profile or NVML name; logs do not name it. Without it the memory is not compared.
        gpu_count: GPUs of the node, where the log prints no arguments.
        model: Hub id, bundled name or folder, where the log names a path that is not here.
        vllm_version: else the one that the log prints.
        calibration: what another log of this server said, as :func:`~vllm_advisor.size` takes it.

    Raises:
        InputError: the file cannot be read, nothing of vLLM's start is in it, or the calibration
            is of another server.
        UnknownFactError: the GPU or the version that is given is not known.
    """
    name = str(source)
    log = read_startup_log(_read(Path(source)) if lines is None else lines, name)
    facts = startup_facts(log, gpu=gpu, model=model, vllm_version=vllm_version)
    findings = findings_of(log, facts, gpu_count=gpu_count, file=name)
    return StartupReport(
        source=name,
        log=log,
        facts=facts,
        comparison=compare(log, facts, gpu_count=gpu_count, calibration=calibration),
        refusals=explain_refusals(log, facts, findings),
        findings=tuple(findings),
    )


def write_memory_calibration(
    report: StartupReport, path: str | Path, *, overwrite: bool = False
) -> None:
    """Write the calibration file of a report, or nothing.

    Raises:
        InputError: there is nothing to compare (see :meth:`StartupReport.calibration`).
        OutputError: it cannot be written, or is there with other content.
    """
    write_text(calibration_text(report.calibration()), Path(path), overwrite=overwrite)


def report_pod(
    pod: str,
    *,
    namespace: str | None = None,
    container: str | None = None,
    previous: bool = False,
    **given: Any,
) -> StartupReport:
    """:func:`report_startup` of what ``kubectl logs`` prints.

    Raises:
        InputError: nothing of vLLM's start is in the log.
        UnknownFactError: kubectl cannot read it; or as for :func:`report_startup`.
    """
    from vllm_advisor.probe.pod_log import read_pod_log  # noqa: PLC0415 - seldom asked for

    text = read_pod_log(pod, namespace=namespace, container=container, previous=previous)
    return report_startup(f"pod {pod}", lines=text.split("\n"), **given)


def _read(path: Path) -> Iterable[str]:
    """The lines; bytes that are no UTF-8 become marks, since logs hold what programs print."""
    try:
        with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
            yield from file
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "this is no path"
        raise InputError(f"cannot read: {reason}", where=str(path), fix=_READS) from None
