"""Subjects for rule tests: the servers of a script or a manifest with model, GPU and figures.

A source may say on a comment line of its own, before the command:

    # gpu: h100-sxm x 8 x 2          two nodes of eight
    # vllm: 0.32.0
    # class: {name: chat, prompt_tokens: 900, output_tokens: 100, concurrent_requests: 40}

    (a class goes on in comment lines that are indented).

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
from vllm_advisor.knowledge.workloads import load_traffic
from vllm_advisor.parse.images import Image
from vllm_advisor.parse.kinds import Kind, kind_of
from vllm_advisor.parse.parsed_command import ParsedCommand
from vllm_advisor.parse.sources import read_source
from vllm_advisor.parse.suppressions import read_suppressions
from vllm_advisor.rules.hf_overrides import context_length
from vllm_advisor.rules.protocol import SourceSubject, Subject
from vllm_advisor.rules.registry import (
    all_rules,
    run_rules,
    run_source_rules,
    run_suppression_rules,
)
from vllm_advisor.rules.suppressing import hold_back
from vllm_advisor.sizing.instance import size_instance
from vllm_advisor.sizing.settings import InstanceSettings
from vllm_advisor.types.accelerator import Accelerator, Node
from vllm_advisor.types.engine import EngineFacts
from vllm_advisor.types.finding import Finding, NotChecked
from vllm_advisor.types.model import (
    ModelFacts,
)
from vllm_advisor.types.serving import ServingFacts
from vllm_advisor.types.sizing import InstanceFigures
from vllm_advisor.types.source import Source, SourceKind
from vllm_advisor.types.suppression import Suppressed

TESTS = Path(__file__).parents[2]
_CONFIGS = TESTS / "data" / "configs"
_HEADER = re.compile(r"^# (gpu|vllm): *(.+)$", re.MULTILINE)
_CLASS = re.compile(r"^# class: *(.+(?:\n#  .+)*)$", re.MULTILINE)
_EXPECT = re.compile(r"# expect: *([A-Z0-9, ]+)$")


def subjects(script: str, file: str = "serve.sh") -> list[Subject]:
    """One subject per server of a source, which is a script unless the file's name says else."""
    return list(source_of(script, file).subjects)


def source_of(text: str, file: str) -> SourceSubject:
    """A source with a subject for each of its servers."""
    header = dict(_HEADER.findall(text))
    node = node_of(header["gpu"]) if "gpu" in header else None

    def engine_of(image: Image | None) -> EngineFacts:
        return load_engine(header.get("vllm") or (image.version if image else "") or None)

    lines = [" ".join(re.split(r"\n#\s+", found)) for found in _CLASS.findall(text)]
    listed = "classes:\n" + "\n".join(f"  - {c}" for c in lines)
    classes = load_traffic(listed, file=file).classes if lines else None
    # Fragments of manifests look like nothing in particular.
    kind: Kind = "shell" if file.endswith(".sh") else kind_of(file, text) or "kubernetes"
    deployed = read_source(text, file, engine_of, kind=kind)
    found = []
    for instance in deployed.instances:
        image = instance.container.image if instance.container else None
        subject = subject_of(instance.command, engine_of(image), node)
        found.append(replace(subject, instance=instance, deployed=deployed, classes=classes))
    return SourceSubject(deployed=deployed, subjects=tuple(found))


def judge(
    text: str, file: str = "serve.sh"
) -> tuple[list[Finding], list[Suppressed], list[NotChecked]]:
    """Findings that count, findings that comments keep back, and what could not be checked."""
    source = source_of(text, file)
    findings: list[Finding] = []
    not_checked: list[NotChecked] = []
    for found, skipped in (*map(run_rules, source.subjects), run_source_rules(source)):
        findings += found
        not_checked += skipped
    ran = {rule.id for rule in all_rules()} - {skipped.rule for skipped in not_checked}
    stay, back, uses = hold_back(findings, read_suppressions(text, file), ran)
    return [*stay, *run_suppression_rules(uses)], list(back), not_checked


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
