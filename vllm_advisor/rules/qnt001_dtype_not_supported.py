"""The GPU or the model does not take this dtype.

## What it checks
`--dtype` against the GPU (bfloat16 needs compute capability 8.0) and the model (Gemma and GLM-4
overflow in float16). Versions before 0.9 also stop on `--dtype auto` with a bfloat16 checkpoint;
later ones take float16 by themselves.

## Why it matters
vLLM refuses to start: "Bfloat16 is only supported on GPUs with compute capability of at least 8.0".

## Bad
```bash
# gpu: t4 x 2
vllm serve Qwen/Qwen3-8B --dtype bfloat16 --tensor-parallel-size 2 --max-model-len 4096
```

## Good
```bash
# gpu: t4 x 2
vllm serve Qwen/Qwen3-8B --dtype half --tensor-parallel-size 2 --max-model-len 4096
```

## Fix
`--dtype half`, or `--dtype float32` for models that overflow in float16.

## References
- vllm:0.33.0:vllm/platforms/cuda.py#check_if_supports_dtype
- vllm:0.33.0:vllm/config/model.py#_resolve_auto_dtype
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.errors import InfeasibleError, UnknownFactError
from vllm_advisor.knowledge.quantization_support import auto_dtype_falls_back
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.sizing.cache_dtype import resolved_dtype
from vllm_advisor.types.finding import Severity
from vllm_advisor.types.model import ModelFacts

_AMPERE = 80  # compute capability x 10


@rule(
    id="QNT001",
    name="dtype-not-supported",
    severity=Severity.ERROR,
    needs=("accelerator",),
    flags=("dtype",),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Resolve the dtype as vLLM does."""
    if subject.node is None:
        return
    gpu, model = subject.node.accelerator, subject.model
    asked = str(subject.args.get("dtype", "auto"))
    before_ampere = gpu.capability < _AMPERE
    falls_back = auto_dtype_falls_back(subject.engine.version)
    stops = asked == "auto" and before_ampere and not falls_back
    message = ""
    if asked == "bfloat16" and before_ampere:
        message = "bfloat16 needs compute capability 8.0"
    elif model is None:
        if stops or asked in ("half", "float16"):
            reason = subject.why_missing("model")
            raise UnknownFactError(f"whether the model takes the dtype is not known: {reason}")
        return
    elif stops and model.dtype == "bfloat16":
        message = (
            f"the checkpoint is bfloat16, and vLLM {subject.engine.version} does not change it"
        )
    else:
        try:
            resolved_dtype(model, asked, gpu)
        except InfeasibleError as refused:
            message = refused.what
    if not message:
        return
    yield Fault(
        message=f"{message}; {gpu.name} has {gpu.capability / 10}",
        location=subject.place("dtype"),
        fix=_instead(model, before_ampere=before_ampere),
        evidence=(("dtype", asked), ("compute_capability", gpu.capability / 10)),
    )


def _instead(model: ModelFacts | None, *, before_ampere: bool) -> str:
    if model is not None and not model.float16:
        return "--dtype float32" if before_ampere else "--dtype bfloat16"
    return "--dtype half"
