"""What would make an instance start, or hold more: no rule, but what the rules advise."""

from __future__ import annotations

from vllm_advisor.errors import AdvisorError
from vllm_advisor.knowledge.attention import attention_choice
from vllm_advisor.knowledge.engines import runs_fp8_weights
from vllm_advisor.knowledge.overheads import load_overheads
from vllm_advisor.rules.protocol import Subject
from vllm_advisor.sizing.remedies import Case, remedies
from vllm_advisor.types.engine import AttentionChoice


def memory_remedies(subject: Subject) -> tuple[str, ...]:
    """Flags with values under which vLLM starts, the cheapest first."""
    case = instance_case(subject)
    return tuple(r.flags for r in remedies(case)) if case is not None else ()


def instance_case(subject: Subject) -> Case | None:
    """The instance as sizing tries changes on it; ``None`` where a fact is missing."""
    model, node = subject.model, subject.node
    if subject.settings is None or subject.figures is None or model is None or node is None:
        return None
    version = subject.engine.version_used or subject.engine.version
    fp8: AttentionChoice | None = None
    try:
        fp8 = attention_choice(model, node.accelerator.capability, node.accelerator.name, "fp8")
    except AdvisorError:
        fp8 = None
    return Case(
        model=model,
        settings=subject.settings,
        figures=subject.figures,
        accelerator=node.accelerator,
        overheads=subject.overheads or load_overheads(version),
        fp8=fp8,
        fp8_weights=runs_fp8_weights(subject.engine, model, node.accelerator),
        gpus=node.total_gpus,
        memory_used=node.memory_used,
    )
