"""check(): what a person already has, judged by the same facts and the same sizing as a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vllm_advisor.api.check_report import CheckReport
from vllm_advisor.api.models import find_model
from vllm_advisor.api.reviewing import COMMAND_LINE, read_texts, review
from vllm_advisor.api.rule_choice import CheckOptions
from vllm_advisor.api.runner import served_model
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
from vllm_advisor.rules.registry import run_rules
from vllm_advisor.sizing.instance import size_instance
from vllm_advisor.sizing.settings import InstanceSettings
from vllm_advisor.types.accelerator import Interconnect, Node
from vllm_advisor.types.decision import Location
from vllm_advisor.types.engine import EngineFacts
from vllm_advisor.types.finding import Finding, NotChecked
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.types.sizing import InstanceFigures
from vllm_advisor.types.source import Source, SourceKind


def check(
    source: str | Path | list[str],
    *,
    text: str | None = None,
    gpu: str | None = None,
    gpu_count: int = 1,
    node_count: int = 1,
    model_config: str | None = None,
    vllm_version: str | None = None,
    options: CheckOptions | None = None,
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
        options: which rules run (see :func:`~vllm_advisor.api.rule_choice.check_options`); all
            unless given.

    Raises:
        InputError: the script cannot be read or has no vllm command.
        UnknownFactError: the GPU or the version is not known.
    """
    engine = load_engine(vllm_version)
    node = _node(gpu, gpu_count, node_count) if gpu else None
    options = options or CheckOptions()
    findings: list[Finding] = []
    skipped: list[NotChecked] = []
    figures: dict[str, dict[str, Any]] = {}
    commands = _commands(source, text, engine)
    for command in commands:
        subject = _subject(command, engine, node, model_config)
        found, not_checked = run_rules(subject, options.rules_for(command.location.file))
        findings += found
        skipped += [n for n in not_checked if n not in skipped]
        if subject.figures is not None and subject.settings is not None:
            key = f"{command.location.file}:{command.location.line}"
            figures[key] = figures_dict(subject.figures, subject.settings.max_model_len)
    texts = read_texts((c.location.file for c in commands), _known_texts(source, text))
    reviewed = review(findings, texts, options, {n.rule for n in skipped})
    return CheckReport(
        vllm_version=engine.version,
        findings=reviewed.findings,
        suppressed=reviewed.suppressed,
        not_checked=tuple(skipped),
        rules=tuple(sorted(options.rules)),
        figures=figures,
        texts=texts,
    )


def _known_texts(source: str | Path | list[str], text: str | None) -> dict[str, str]:
    """The text that need not be read from a file, by its name in locations."""
    if isinstance(source, list):
        return {COMMAND_LINE: " ".join(source)}
    return {} if text is None else {str(source): text}


def _commands(
    source: str | Path | list[str], text: str | None, engine: EngineFacts
) -> list[ParsedCommand]:
    if isinstance(source, list):
        where = COMMAND_LINE
        column, tokens = 1, []
        for word in source:
            tokens.append(Token(word, Location(file=where, line=1, column=column)))
            column += len(word) + 1
        return [parse_serve_command(tokens, engine)]
    name = str(source)
    if text is None:
        try:
            text = Path(name).read_bytes().decode("utf-8")  # line ends stay
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
