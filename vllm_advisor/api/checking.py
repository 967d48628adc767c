"""check(): what a person already has, judged by the same facts and the same sizing as a plan."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vllm_advisor.api.models import find_model
from vllm_advisor.api.runner import served_model
from vllm_advisor.api.served_traffic import with_traffic
from vllm_advisor.api.settings import resolve_settings
from vllm_advisor.errors import AdvisorError, InputError, UnknownFactError
from vllm_advisor.knowledge.engines import load_engine
from vllm_advisor.knowledge.gpus import find_gpu
from vllm_advisor.knowledge.overheads import load_overheads
from vllm_advisor.parse.serve_command import (
    ParsedCommand,
    Token,
    parse_serve_command,
    parse_shell_script,
)
from vllm_advisor.render.figures import figures_dict
from vllm_advisor.rules.protocol import Subject
from vllm_advisor.rules.registry import all_rules, run_rules
from vllm_advisor.sizing.instance import size_instance
from vllm_advisor.sizing.settings import InstanceSettings
from vllm_advisor.types.accelerator import Interconnect, Node
from vllm_advisor.types.decision import Location
from vllm_advisor.types.engine import EngineFacts
from vllm_advisor.types.finding import Finding, NotChecked, Severity
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.types.sizing import InstanceFigures
from vllm_advisor.types.source import Source, SourceKind
from vllm_advisor.types.workload import Workload

_ORDER = (Severity.ERROR, Severity.WARNING, Severity.INFO)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """Findings, what could not be checked, and the figures of each instance found."""

    vllm_version: str
    findings: tuple[Finding, ...]
    not_checked: tuple[NotChecked, ...]
    figures: dict[str, dict[str, Any]]

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
                    "location": {
                        "file": f.location.file,
                        "line": f.location.line,
                        "column": f.location.column,
                    },
                    "evidence": dict(f.evidence),
                    "fix": f.fix,
                }
                for f in self.findings
            ],
            "not_checked": [{"rule": n.rule, "reason": n.reason} for n in self.not_checked],
            "figures": self.figures,
        }


def check(
    source: str | Path | list[str],
    *,
    text: str | None = None,
    gpu: str | None = None,
    gpu_count: int = 1,
    node_count: int = 1,
    model_config: str | None = None,
    vllm_version: str | None = None,
    workload: str | Path | Workload | None = None,
    classes: Collection[str] | None = None,
    replicas: int = 1,
) -> CheckReport:
    """Check ``vllm serve`` commands.

    Args:
        source: path of a shell script, or a command as a list of words.
        text: the script's text, when ``source`` is only its name (standard input).
        gpu: GPU profile or NVML name; without it what needs a GPU is listed as not checked.
        gpu_count: GPUs of the node.
        node_count: equal nodes that one instance may span.
        model_config: folder or config.json of the model, when its name is not known.
        vllm_version: default is the newest whose facts are known.
        workload: a workload file, or one with ``classes`` alone: without it, what depends on the
            traffic is listed as not checked.
        classes: names of the workload's classes that these commands serve; all unless given.
        replicas: equal copies of each command that share its requests.

    Raises:
        InputError: the script cannot be read or has no vllm command.
        UnknownFactError: the GPU or the version is not known.
    """
    engine = load_engine(vllm_version)
    node = _node(gpu, gpu_count, node_count) if gpu else None
    findings: list[Finding] = []
    skipped: list[NotChecked] = []
    figures: dict[str, dict[str, Any]] = {}
    subjects = [_subject(c, engine, node, model_config) for c in _commands(source, text, engine)]
    if workload is not None:
        subjects = with_traffic(subjects, workload, classes=classes, replicas=replicas)
    for subject in subjects:
        found, not_checked = run_rules(subject)
        findings += found
        skipped += [n for n in not_checked if n not in skipped]
        if subject.figures is not None and subject.settings is not None:
            location = subject.command.location
            key = f"{location.file}:{location.line}"
            figures[key] = figures_dict(subject.figures, subject.settings.max_model_len)
    findings.sort(key=lambda f: (_ORDER.index(f.severity), str(f.location), f.rule))
    return CheckReport(
        vllm_version=engine.version,
        findings=tuple(findings),
        not_checked=tuple(skipped),
        figures=figures,
    )


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


def _commands(
    source: str | Path | list[str], text: str | None, engine: EngineFacts
) -> list[ParsedCommand]:
    if isinstance(source, list):
        where = "command line"
        column, tokens = 1, []
        for word in source:
            tokens.append(Token(word, Location(file=where, line=1, column=column)))
            column += len(word) + 1
        return [parse_serve_command(tokens, engine)]
    name = str(source)
    if text is None:
        try:
            text = Path(name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(
                f"cannot read: {getattr(error, 'strerror', None) or error}",
                where=name,
                fix="name a shell script, or write the command after --",
            ) from None
    return list(parse_shell_script(text, name, engine))


def _node(gpu: str, gpu_count: int, node_count: int) -> Node:
    accelerator = find_gpu(gpu)
    return Node(
        accelerator=accelerator,
        gpu_count=gpu_count,
        node_count=node_count,
        interconnect=Interconnect.NVLINK if accelerator.nvlink_bandwidth else Interconnect.PCIE,
        source=Source(SourceKind.USER, "--gpu"),
    )


def _subject(
    command: ParsedCommand, engine: EngineFacts, node: Node | None, model_config: str | None
) -> Subject:
    missing: dict[str, str] = {}
    if node is None:
        missing["accelerator"] = "the GPU is not known; give --gpu"
    model: ModelFacts | None = None
    try:
        model = find_model(model_config or command.model)
    except (UnknownFactError, InputError) as error:
        missing["model"] = f"{error.what}; give --model-config"
    settings: InstanceSettings | None = None
    figures: InstanceFigures | None = None
    sizing_error: AdvisorError | None = None
    if model is not None and node is not None:
        args = command.engine_args.as_dict()
        try:
            model = served_model(model, args)
            # Too long a context is the business of a rule, which knows the override.
            settings = resolve_settings(
                model, engine, node.accelerator, args, allow_long=True
            ).settings
            overheads = load_overheads(engine.version_used or engine.version)
            figures = size_instance(
                model, settings, accelerator=node.accelerator, overheads=overheads
            )
        except AdvisorError as error:
            sizing_error = error
    return Subject(
        command=command,
        engine=engine,
        model=model,
        node=node,
        settings=settings,
        figures=figures,
        sizing_error=sizing_error,
        missing=missing,
    )
