"""check(): what a person already has, judged by the same facts and the same sizing as a plan."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from vllm_advisor.api.check_facts import FactFinder, Given
from vllm_advisor.api.check_report import CheckedInstance, CheckReport
from vllm_advisor.api.check_sources import read_sources
from vllm_advisor.api.reviewing import review
from vllm_advisor.api.rule_choice import CheckOptions
from vllm_advisor.parse.remarks import Note
from vllm_advisor.render.figures import figures_dict
from vllm_advisor.rules.protocol import SourceSubject, Subject
from vllm_advisor.rules.registry import run_rules, run_source_rules
from vllm_advisor.sizing.measured_memory import CALIBRATION_NOTES
from vllm_advisor.types.accelerator import Accelerator
from vllm_advisor.types.decision import Location
from vllm_advisor.types.finding import Finding, NotChecked
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.types.workload import Workload

if TYPE_CHECKING:
    from vllm_advisor.knowledge.calibrations import Calibration, MemoryFile


def check(
    source: str | Path | Sequence[str | Path],
    *,
    kind: str | None = None,
    text: str | None = None,
    gpu: str | Accelerator | None = None,
    gpu_count: int | None = None,
    node_count: int | None = None,
    model_config: str | ModelFacts | None = None,
    vllm_version: str | None = None,
    workload: str | Path | Workload | None = None,
    classes: Collection[str] | None = None,
    replicas: int | None = None,
    calibration: Calibration | Sequence[Calibration] | None = None,
    options: CheckOptions | None = None,
) -> CheckReport:
    """Check everything that a source starts.

    Args:
        source: path of a file or a folder, several of them, a command as a list of words, or with
            ``kind`` also the text itself.
        kind: what the source is: ``serve``, ``shell``, ``kubernetes``, ``helm-production-stack``,
            ``compose``, ``systemd``, ``config``, ``plan``, ``dockerfile``; found out by name and
            content where it is not given.
        text: the text, when ``source`` is only its name (``-`` for standard input).
        gpu: GPU profile, NVML name or accelerator; else the one that node labels in the source
            name. Without either, what needs a GPU is listed as not checked.
        gpu_count: GPUs of the node; else those that the source asks for, and 1 for a command.
        node_count: equal nodes that one instance may span; else what the source says, and 1.
        model_config: folder or config.json of the model, or its facts, when its name is not known.
        vllm_version: else the one that an image's tag states, and the newest known.
        workload: a workload file, or one with ``classes`` alone: without it, what depends on the
            traffic is listed as not checked.
        classes: names of the workload's classes that these servers serve; all unless given.
        replicas: equal copies of each server that share its requests; else those that the source
            states, and 1.
        calibration: what a start-up log of this GPU and model says of its memory, as
            :func:`~vllm_advisor.size` takes it.
        options: which rules run (see :func:`~vllm_advisor.api.rule_choice.check_options`); all
            unless given.

    Raises:
        InputError: the source cannot be read, or starts no vLLM; or the calibration is of a GPU or
            of versions that it does not use.
        UnknownFactError: the GPU or the version that is named is not known.
    """
    memory: tuple[MemoryFile, ...] = ()
    if calibration is not None:
        from vllm_advisor.knowledge.calibrations import memory_calibrations

        memory = memory_calibrations(calibration)
    finder = FactFinder(
        Given(
            gpu=gpu,
            gpu_count=gpu_count,
            node_count=node_count,
            model_config=model_config,
            vllm_version=vllm_version,
            memory=memory,
        )
    )
    options = options or CheckOptions()
    sources = read_sources(source, finder.engine_of, text=text, kind=kind)
    findings: list[Finding] = []
    skipped: dict[NotChecked, None] = {}
    checked = [
        finder.subject(deployed, instance)
        for deployed in sources.deployed
        for instance in deployed.instances
    ]
    if memory:
        from vllm_advisor.api.applied_calibration import refuse_other_gpus

        refuse_other_gpus(memory, (s.node.accelerator.id for s in checked if s.node is not None))
    if workload is not None:
        # What reads workload files is a tenth of all that is loaded; the plugin never needs it.
        from vllm_advisor.api.served_traffic import with_traffic

        checked = with_traffic(checked, workload, classes=classes, replicas=replicas)
    for deployed in sources.deployed:
        subjects = tuple(s for s in checked if s.deployed is deployed)
        whole = SourceSubject(deployed=deployed, subjects=subjects)
        rules = options.rules_for(deployed.file)
        results = [run_rules(subject, rules) for subject in subjects]
        for found, not_checked in (*results, run_source_rules(whole, rules)):
            findings += found
            skipped.update(dict.fromkeys(not_checked))
    reviewed = review(findings, sources.texts, options, {n.rule for n in skipped})
    rows = [_row(subject, finder) for subject in checked]
    keys = _unique([row.location for row in rows])
    figures = {
        key: figures_dict(subject.figures, subject.settings.max_model_len)
        for key, subject in zip(keys, checked, strict=True)
        if subject.figures is not None and subject.settings is not None
    }
    versions = dict.fromkeys(row.vllm_version for row in rows)
    return CheckReport(
        vllm_version=", ".join(versions) or finder.engine_of(None).version,
        findings=reviewed.findings,
        suppressed=reviewed.suppressed,
        not_checked=tuple(skipped),
        figures=figures,
        instances=tuple(
            replace(row, figures=key if key in figures else None)
            for key, row in zip(keys, rows, strict=True)
        ),
        notes=(*sources.notes, *_calibrated(checked)),
        rules=tuple(sorted(options.rules)),
        texts=sources.texts,
    )


def _calibrated(subjects: Sequence[Subject]) -> Iterator[Note]:
    """What a log said of each server's memory, and what of it was not taken."""
    for subject in subjects:
        for assumption in subject.figures.assumptions if subject.figures else ():
            if assumption.id.startswith(CALIBRATION_NOTES):
                yield Note(message=assumption.text, location=subject.command.location)


def _row(subject: Subject, finder: FactFinder) -> CheckedInstance:
    """The row of a subject that was read from a source."""
    instance, node = subject.instance, subject.node
    if instance is None:
        raise ValueError("a subject without an instance has no row")
    return CheckedInstance(
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
