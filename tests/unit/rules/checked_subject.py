"""Subjects for rule tests: a script's commands with model, GPU and figures.

A script may say on a comment line of its own, before the command:

    # gpu: h100-sxm x 8 x 2          two nodes of eight
    # vllm: 0.32.0

The model is the config in tests/data/configs named after the command's model, without its
organisation and in lower case; a model without such a file is not known. ``# expect: KV001`` at the
end of a line says which rules report that line.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from vllm_advisor.errors import AdvisorError, InfeasibleError
from vllm_advisor.knowledge.attention import attention_choice
from vllm_advisor.knowledge.engines import batch_defaults, load_engine
from vllm_advisor.knowledge.gpus import find_gpu
from vllm_advisor.knowledge.model_facts import model_facts
from vllm_advisor.knowledge.overheads import load_overheads
from vllm_advisor.parse.serve_command import ParsedCommand, parse_shell_script
from vllm_advisor.rules.hf_overrides import context_length
from vllm_advisor.rules.protocol import Subject
from vllm_advisor.sizing.instance import InstanceSettings, size_instance
from vllm_advisor.types.accelerator import Accelerator, Node
from vllm_advisor.types.engine import EngineFacts
from vllm_advisor.types.model import ModelFacts, ServingFacts
from vllm_advisor.types.sizing import InstanceFigures
from vllm_advisor.types.source import Source, SourceKind

TESTS = Path(__file__).parents[2]
_CONFIGS = TESTS / "data" / "configs"
_HEADER = re.compile(r"^# (gpu|vllm): *(.+)$", re.MULTILINE)
_EXPECT = re.compile(r"# expect: *([A-Z0-9, ]+)$")
# Settings that are an argument under the same name, with vLLM's defaults.
_PLAIN = {
    "kv_cache_dtype": "auto",
    "tensor_parallel_size": 1,
    "pipeline_parallel_size": 1,
    "decode_context_parallel_size": 1,
    "data_parallel_size": 1,
    "enable_expert_parallel": False,
    "enforce_eager": False,
    "kv_cache_memory_bytes": None,
}


def subjects(script: str, file: str = "serve.sh") -> list[Subject]:
    """One subject per command of a script."""
    header = dict(_HEADER.findall(script))
    engine = load_engine(header.get("vllm"))
    node = node_of(header["gpu"]) if "gpu" in header else None
    return [subject_of(c, engine, node) for c in parse_shell_script(script, file, engine)]


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
    args, engine = subject.args, subject.engine
    choice = attention_choice(model, gpu.capability, gpu.name, args.get("kv_cache_dtype", "auto"))
    defaults = batch_defaults(engine, gpu)
    tokens = args.get("max_num_batched_tokens", defaults.max_num_batched_tokens)
    block_size = args.get("block_size", choice.block_size)
    if block_size % 16:
        raise InfeasibleError(f"no backend takes block size {block_size}", where="--block-size")
    return InstanceSettings(
        max_model_len=context_length(subject),
        max_num_batched_tokens=tokens,
        max_num_seqs=args.get("max_num_seqs", min(defaults.max_num_seqs, tokens)),
        gpu_memory_utilization=args.get("gpu_memory_utilization", engine.gpu_memory_utilization),
        block_size=block_size,
        attention_backend=choice.backend,
        async_scheduling=engine.async_scheduling,
        **{dest: args.get(dest, default) for dest, default in _PLAIN.items()},
    )


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
