"""check(): what a person already has, judged by the same facts and the same sizing as a plan."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from vllm_advisor.api.check_facts import FactFinder, Given
from vllm_advisor.api.check_sources import read_sources
from vllm_advisor.api.served_traffic import with_traffic
from vllm_advisor.errors import InputError
from vllm_advisor.parse.remarks import Note
from vllm_advisor.render.figures import figures_dict
from vllm_advisor.rules.protocol import SourceSubject, Subject
from vllm_advisor.rules.registry import all_rules, run_rules, run_source_rules
from vllm_advisor.types.decision import Location
from vllm_advisor.types.finding import Finding, NotChecked, Severity
from vllm_advisor.types.workload import Workload

_ORDER = (Severity.ERROR, Severity.WARNING, Severity.INFO)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedInstance:
    """One server that was checked, and what was taken for its version and hardware.

    ``gpu`` is None where it is not known; ``figures`` is the key of the report's figures.
    """

    name: str
    kind: str
    location: Location
    model: str
    vllm_version: str
    vllm_version_source: str
    gpu: str | None
    gpu_count: int | None
    gpu_source: str | None
    figures: str | None = None

    @classmethod
    def of(cls, subject: Subject, finder: FactFinder) -> CheckedInstance:
        """The row of a subject that was read from a source."""
        instance, node = subject.instance, subject.node
        if instance is None:
            raise ValueError("a subject without an instance has no row")
        return cls(
            name=instance.name,
            kind=instance.kind,
            location=subject.command.location,
            model=subject.command.model,
            vllm_version=subject.engine.version,
            vllm_version_source=finder.version_source(instance),
            gpu=node.accelerator.id if node else None,
            gpu_count=node.gpu_count if node else None,
            gpu_source=str(node.source) if node else None,
        )

    def to_dict(self) -> dict[str, Any]:
        """The row as plain data."""
        return {**asdict(self), "location": place_dict(self.location)}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """Findings, what could not be checked, and the servers found with their figures.

    ``notes`` say what was passed over or taken for granted in reading.
    """

    vllm_version: str
    findings: tuple[Finding, ...]
    not_checked: tuple[NotChecked, ...]
    figures: dict[str, dict[str, Any]]
    instances: tuple[CheckedInstance, ...] = ()
    notes: tuple[Note, ...] = ()

    def fails(self, fail_on: str) -> bool:
        """Whether a finding is at or above ``fail_on`` (``never`` never fails)."""
        if fail_on == "never":
            return False
        limit = _ORDER.index(Severity(fail_on))
        return any(_ORDER.index(f.severity) <= limit for f in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Plain data; keys are only ever added (see ``schema_version``)."""
        return {
            "schema_version": "1",
            "vllm_version": self.vllm_version,
            "findings": [
                {
                    "rule": f.rule,
                    "name": f.name,
                    "severity": f.severity.value,
                    "confidence": f.confidence.value,
                    "message": f.message,
                    "location": place_dict(f.location),
                    "evidence": dict(f.evidence),
                    "fix": f.fix,
                }
                for f in self.findings
            ],
            "not_checked": [{"rule": n.rule, "reason": n.reason} for n in self.not_checked],
            "figures": self.figures,
            "instances": [row.to_dict() for row in self.instances],
            "notes": [
                {"message": note.message, "location": place_dict(note.location)}
                for note in self.notes
            ],
        }


def place_dict(place: Location) -> dict[str, Any]:
    """A place as plain data."""
    return {"file": place.file, "line": place.line, "column": place.column}


def check(
    source: str | Path | Sequence[str | Path],
    *,
    kind: str | None = None,
    text: str | None = None,
    gpu: str | None = None,
    gpu_count: int | None = None,
    node_count: int | None = None,
    model_config: str | None = None,
    vllm_version: str | None = None,
    workload: str | Path | Workload | None = None,
    classes: Collection[str] | None = None,
    replicas: int | None = None,
) -> CheckReport:
    """Check everything that a source starts.

    Args:
        source: path of a file or a folder, several of them, a command as a list of words, or with
            ``kind`` also the text itself.
        kind: what the source is: ``serve``, ``shell``, ``kubernetes``, ``helm-production-stack``,
            ``compose``, ``systemd``, ``config``, ``plan``, ``dockerfile``; found out by name and
            content where it is not given.
        text: the text, when ``source`` is only its name (``-`` for standard input).
        gpu: GPU profile or NVML name; else the one that node labels in the source name. Without
            either, what needs a GPU is listed as not checked.
        gpu_count: GPUs of the node; else those that the source asks for, and 1 for a command.
        node_count: equal nodes that one instance may span; else what the source says, and 1.
        model_config: folder or config.json of the model, when its name is not known.
        vllm_version: else the one that an image's tag states, and the newest known.
        workload: a workload file, or one with ``classes`` alone: without it, what depends on the
            traffic is listed as not checked.
        classes: names of the workload's classes that these servers serve; all unless given.
        replicas: equal copies of each server that share its requests; else those that the source
            states, and 1.

    Raises:
        InputError: the source cannot be read, or starts no vLLM.
        UnknownFactError: the GPU or the version that is named is not known.
    """
    finder = FactFinder(
        Given(
            gpu=gpu,
            gpu_count=gpu_count,
            node_count=node_count,
            model_config=model_config,
            vllm_version=vllm_version,
        )
    )
    sources = read_sources(source, finder.engine_of, text=text, kind=kind)
    findings: list[Finding] = []
    skipped: dict[NotChecked, None] = {}
    checked = [
        finder.subject(deployed, instance)
        for deployed in sources.deployed
        for instance in deployed.instances
    ]
    if workload is not None:
        checked = with_traffic(checked, workload, classes=classes, replicas=replicas)
    for deployed in sources.deployed:
        subjects = tuple(s for s in checked if s.deployed is deployed)
        whole = SourceSubject(deployed=deployed, subjects=subjects)
        for found, not_checked in (*map(run_rules, subjects), run_source_rules(whole)):
            findings += found
            skipped.update(dict.fromkeys(not_checked))
    findings.sort(key=lambda f: (_ORDER.index(f.severity), str(f.location), f.rule))
    rows = [CheckedInstance.of(subject, finder) for subject in checked]
    keys = _unique([row.location for row in rows])
    figures = {
        key: figures_dict(subject.figures, subject.settings.max_model_len)
        for key, subject in zip(keys, checked, strict=True)
        if subject.figures is not None and subject.settings is not None
    }
    versions = dict.fromkeys(row.vllm_version for row in rows)
    return CheckReport(
        vllm_version=", ".join(versions) or finder.engine_of(None).version,
        findings=tuple(findings),
        not_checked=tuple(skipped),
        figures=figures,
        instances=tuple(
            replace(row, figures=key if key in figures else None)
            for key, row in zip(keys, rows, strict=True)
        ),
        notes=tuple(sources.notes),
    )


def _unique(places: Sequence[Location]) -> list[str]:
    """``file:line`` of each place, with the column and then a number where that is taken."""
    keys: dict[str, None] = {}
    for place in places:
        key = f"{place.file}:{place.line}"
        if key in keys:
            key = str(place)
        number = 2
        while key in keys:
            key = f"{place}#{number}"
            number += 1
        keys[key] = None
    return list(keys)


def rules_text(name: str | None = None) -> str:
    """The table of rules, or the page of one.

    Raises:
        InputError: there is no rule of that id or name.
    """
    if name is None:
        width = max(len(r.name) for r in all_rules())
        rows = [f"{r.id}  {r.name:<{width}}  {r.severity:<7}  {r.summary}" for r in all_rules()]
        return "\n".join(rows) + "\n"
    for rule in all_rules():
        if name.upper() == rule.id or name == rule.name:
            return f"{rule.id} {rule.name} ({rule.severity})\n\n{rule.page}\n"
    raise InputError(
        f"there is no rule {name!r}", where=name, fix="`vllm-advisor rules` lists them"
    )
