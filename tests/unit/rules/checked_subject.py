"""Subjects for rule tests: the servers of a script or of YAML, with model, GPU and figures.

A comment line of its own may say, before anything else:

    # gpu: h100-sxm x 8 x 2          two nodes of eight
    # vllm: 0.32.0

The model is the config in tests/data/configs named after the command's model, without its
organisation and in lower case; a model without such a file is not known. ``# expect: KV001`` at the
end of a line says which rules report that line.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

from vllm_advisor.api.settings import resolve_settings
from vllm_advisor.errors import AdvisorError
from vllm_advisor.knowledge.engines import load_engine
from vllm_advisor.knowledge.gpus import find_gpu
from vllm_advisor.knowledge.model_facts import model_facts
from vllm_advisor.knowledge.overheads import load_overheads
from vllm_advisor.parse.kinds import Kind, kind_of
from vllm_advisor.parse.serve_command import ParsedCommand
from vllm_advisor.parse.sources import read_source
from vllm_advisor.rules.hf_overrides import context_length
from vllm_advisor.rules.protocol import SourceSubject, Subject
from vllm_advisor.rules.registry import run_rules, run_source_rules
from vllm_advisor.sizing.instance import size_instance
from vllm_advisor.sizing.settings import InstanceSettings
from vllm_advisor.types.accelerator import Accelerator, Node
from vllm_advisor.types.engine import EngineFacts
from vllm_advisor.types.finding import Finding
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.types.serving import ServingFacts
from vllm_advisor.types.sizing import InstanceFigures
from vllm_advisor.types.source import Source, SourceKind

TESTS = Path(__file__).parents[2]
_CONFIGS = TESTS / "data" / "configs"
_HEADER = re.compile(r"^# (gpu|vllm): *(.+)$", re.MULTILINE)
_EXPECT = re.compile(r"# expect: *([A-Z0-9, ]+)$")


def subjects(script: str, file: str = "serve.sh") -> list[Subject]:
    """One subject per server of a source."""
    return list(source_of(script, file).subjects)


def source_of(text: str, file: str) -> SourceSubject:
    """A source with a subject for each of its servers."""
    header = dict(_HEADER.findall(text))
    engine = load_engine(header.get("vllm"))
    node = node_of(header["gpu"]) if "gpu" in header else None
    deployed = read_source(text, file, lambda _: engine, kind=_kind(text, file))
    found = tuple(
        replace(subject_of(one.command, engine, node), instance=one, deployed=deployed)
        for one in deployed.instances
    )
    return SourceSubject(deployed=deployed, subjects=found)


def _kind(text: str, file: str) -> Kind:
    """What a source is; fragments of manifests look like nothing in particular."""
    return "shell" if file.endswith(".sh") else kind_of(file, text) or "kubernetes"


def judged(text: str, file: str) -> tuple[list[Finding], set[str]]:
    """Findings of all rules over a source, and the ids of the rules that could not judge."""
    source = source_of(text, file)
    runs = [*map(run_rules, source.subjects), run_source_rules(source)]
    found = [finding for findings, _ in runs for finding in findings]
    return found, {skipped.rule for _, not_checked in runs for skipped in not_checked}


def subject_of(command: ParsedCommand, engine: EngineFacts, node: Node | None) -> Subject:
    model = model_of(command.model)
    subject = Subject(command=command, engine=engine, model=model, node=node)
    if model is None or node is None:
        return subject
    settings: InstanceSettings | None = None
    figures: InstanceFigures | None = None
    error: AdvisorError | None = None
    try:
        settings = settings_of(subject, model, node.accelerator)
        figures = size_instance(
            model,
            settings,
            accelerator=node.accelerator,
            overheads=load_overheads(engine.version_used),
        )
    except AdvisorError as raised:
        error = raised
    return Subject(
        command=command,
        engine=engine,
        model=model,
        node=node,
        settings=settings,
        figures=figures,
        sizing_error=error,
    )


def settings_of(subject: Subject, model: ModelFacts, gpu: Accelerator) -> InstanceSettings:
    """The settings of a command, with vLLM's defaults."""
    args = {**subject.args.as_dict(), "max_model_len": context_length(subject)}
    return resolve_settings(model, subject.engine, gpu, args, allow_long=True).settings


def model_of(name: str) -> ModelFacts | None:
    path = _CONFIGS / f"{name.rpartition('/')[2].lower()}.json"
    if not path.is_file():
        return None
    config = json.loads(path.read_text("utf-8"))
    yarn = config.pop("_yarn", {})
    return model_facts(
        name,
        config,
        source=Source(SourceKind.HF, f"{name}/config.json"),
        serving=ServingFacts(yarn_factor=yarn.get("factor"), yarn_original=yarn.get("original")),
    )


def node_of(text: str) -> Node:
    """``h100-sxm x 8 x 2`` as two nodes of eight H100s."""
    name, *counts = (part.strip() for part in text.split(" x "))
    gpus, nodes = (*map(int, counts), 1, 1)[:2]
    source = Source(SourceKind.USER, "test")
    return Node(accelerator=find_gpu(name), gpu_count=gpus, node_count=nodes, source=source)


def expected(script: str) -> list[tuple[int, str]]:
    """``(line, rule)`` of every expectation."""
    return sorted(
        (number, rule.strip())
        for number, line in enumerate(script.splitlines(), 1)
        if (match := _EXPECT.search(line))
        for rule in match[1].split(",")
    )
