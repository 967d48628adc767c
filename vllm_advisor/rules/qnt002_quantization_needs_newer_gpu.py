"""The quantization method needs a newer GPU.

## What it checks
The least compute capability of the method, given with `--quantization` or declared by the
checkpoint, against the GPU. Before vLLM 0.9 block-scaled FP8 weights needed 8.9, before 0.16
NVFP4 weights of compressed-tensors 8.0.

## Why it matters
vLLM refuses to start: "The quantization method awq is not supported for the current GPU. Minimum
capability: 75. Current capability: 70." Passing does not mean that the GPU computes in the format:
FP8 below 8.9 and NVFP4 below 10.0 save memory only.

## Bad
```bash
# gpu: t4 x 2
vllm serve Qwen/Qwen3-8B --quantization mxfp8 --tensor-parallel-size 2 --max-model-len 4096
```

## Good
```bash
# gpu: l4 x 1
vllm serve Qwen/Qwen3-8B --quantization fp8 --max-model-len 4096
```

## Fix
A checkpoint in a format that the GPU takes (GPTQ runs from 6.0, AWQ and FP8 from 7.5), or a newer
GPU.

## References
- vllm:0.33.0:vllm/config/vllm.py#_get_quantization_config
- vllm:0.33.0:vllm/model_executor/layers/quantization/base_config.py#get_min_capability
- https://github.com/vllm-project/vllm/issues/18182
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.errors import UnknownFactError
from vllm_advisor.knowledge.engines import quantization_min_capability
from vllm_advisor.knowledge.quantization_support import (
    block_fp8_needs_ada,
    engine_methods,
    nvfp4_needs_ampere,
)
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity

_ADA, _AMPERE, _TURING = 89, 80, 75  # compute capability x 10
_NVFP4_SCALE_BITS = 8 / 16  # an FP8 scale for 16 weights, which no other format has


@rule(
    id="QNT002",
    name="quantization-needs-newer-gpu",
    severity=Severity.ERROR,
    needs=("accelerator",),
    flags=("quantization",),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Look up what the method needs."""
    if subject.node is None:
        return
    gpu = subject.node.accelerator
    methods = _methods(subject)
    least = quantization_min_capability(subject.engine)
    needed = [_needed(subject, method, least) for method in methods if method in least]
    if not needed or gpu.capability >= max(needed):
        return
    if gpu.capability >= min(needed):
        names = " or ".join(methods)
        raise UnknownFactError(f"whether vLLM takes the checkpoint for {names} is not known")
    usable = [
        m for m in ("awq", "gptq", "fp8") if least.get(m, gpu.capability + 1) <= gpu.capability
    ]
    other = f"a checkpoint in {' or '.join(usable)}, or " if usable else ""
    yield Fault(
        message=f"{methods[0]} needs compute capability {min(needed) / 10}, and {gpu.name} has "
        f"{gpu.capability / 10}",
        location=subject.place("quantization"),
        fix=f"{other}a GPU of compute capability {min(needed) / 10} or more",
        evidence=(
            ("quantization", methods[0]),
            ("compute_capability", gpu.capability / 10),
            ("least_capability", min(needed) / 10),
        ),
    )


def _methods(subject: Subject) -> tuple[str, ...]:
    """vLLM's names for the method, as given, else as the checkpoint declares.

    Raises:
        UnknownFactError: it is not given, and the checkpoint is not known.
    """
    given = subject.args.get("quantization")
    if given is not None:
        return (str(given),)
    if subject.model is None:
        reason = subject.why_missing("model")
        raise UnknownFactError(f"the quantization of the checkpoint is not known: {reason}")
    declared = subject.model.quantization
    return engine_methods(declared) if declared is not None else ()


def _needed(subject: Subject, method: str, least: dict[str, int]) -> int:
    declared = subject.model.quantization if subject.model else None
    if method == "compressed-tensors":
        nvfp4 = declared is not None and declared.scale_bits == _NVFP4_SCALE_BITS
        if nvfp4 and nvfp4_needs_ampere(subject.engine.version):
            return _AMPERE
        return max(least[method], _TURING)  # the least of its schemes
    blocks = declared is not None and declared.weight_block is not None
    if method == "fp8" and blocks and block_fp8_needs_ada(subject.engine.version):
        return _ADA
    return least[method]
