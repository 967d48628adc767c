"""vLLM does not split this model in this way.

## What it checks
Tensor, pipeline and decode-context parallel sizes against the model: attention heads have to be
divisible by the tensor parallel size, KV heads have to divide it or be divisible by it, stages have
to have a layer each, blocks of quantized weights must not be cut.

## Why it matters
vLLM refuses to start: "Total number of attention heads (32) must be divisible by tensor parallel
size (3)".

## Bad
```bash
vllm serve meta-llama/Llama-3.1-8B-Instruct --tensor-parallel-size 3
```

## Good
```bash
vllm serve meta-llama/Llama-3.1-8B-Instruct --tensor-parallel-size 2
```

## Fix
Take one of the sizes that are named.

## References
- vllm:0.33.0:vllm/config/model.py#verify_with_parallel_config
- vllm:0.33.0:vllm/config/parallel.py#ParallelConfig
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.errors import InfeasibleError
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.sizing.parallelism import check_parallelism
from vllm_advisor.types.finding import Severity
from vllm_advisor.types.model import ModelFacts

_SIZES = (
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "prefill_context_parallel_size",
    "decode_context_parallel_size",
)


@rule(
    id="PAR001",
    name="parallel-sizes-refused",
    severity=Severity.ERROR,
    needs=("model",),
    flags=(*_SIZES, "enable_expert_parallel"),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Ask whether vLLM takes the sizes, and which it would take."""
    if subject.model is None:
        return
    sizes = {dest: int(subject.args.get(dest, 1)) for dest in _SIZES}
    if min(sizes.values()) < 1:
        return  # FLG003 says so
    experts = bool(subject.args.get("enable_expert_parallel"))
    refused = _refused(subject.model, sizes, expert_parallel=experts)
    if refused is None:
        return
    dest = next((d for d in _SIZES if subject.spelling(d) == refused.where), _SIZES[0])
    # Heads and layers are what the sizes split: none above both is ever taken.
    model = subject.model
    most = min(
        max(sizes[dest], subject.node.gpu_count if subject.node else 1),
        max(model.num_attention_heads, model.num_hidden_layers),
    )
    allowed = [
        size
        for size in range(1, most + 1)
        if _refused(model, {**sizes, dest: size}, expert_parallel=experts) is None
    ]
    name = subject.spelling(dest)
    yield Fault(
        message=refused.what,
        location=subject.place(dest),
        fix=f"{name} {' or '.join(map(str, allowed))}" if allowed else f"{name}: {refused.fix}",
        evidence=((dest, sizes[dest]), ("num_attention_heads", subject.model.num_attention_heads)),
    )


def _refused(
    model: ModelFacts, sizes: dict[str, int], *, expert_parallel: bool
) -> InfeasibleError | None:
    try:
        check_parallelism(model, **sizes, expert_parallel=expert_parallel)
    except InfeasibleError as error:
        return error
    return None
