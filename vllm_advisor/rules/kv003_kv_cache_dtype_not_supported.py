"""The GPU, or the attention backend vLLM takes on it, cannot use this KV cache dtype.

## What it checks
`--kv-cache-dtype` (or the dtype the checkpoint declares) against the attention backend vLLM selects
for the model and the GPU's compute capability. Not checked when `--attention-backend` is given. Up
to vLLM 0.10 `VLLM_USE_V1=1` takes an FP8 cache only where FlashAttention 3 runs.

## Why it matters
vLLM refuses to start: "FP8 KV cache is not supported by the Triton attention backend". An FP8 cache
needs compute capability 8.9, or 8.0 with FlashInfer.

## Bad
```bash
# gpu: t4 x 1
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 2048 --kv-cache-dtype fp8
```

## Good
```bash
# gpu: l4 x 1
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192 --max-num-seqs 64 \
  --kv-cache-dtype fp8
```

## Fix
`--kv-cache-dtype auto`, or a newer GPU.

## References
- vllm:0.33.0:vllm/platforms/cuda.py#get_attn_backend_cls
- vllm:0.33.0:vllm/v1/attention/backends/triton_attn.py
- vllm:0.10.2:vllm/platforms/cuda.py#is_kv_cache_dtype_supported
"""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from vllm_advisor.errors import InfeasibleError, NotModelledError
from vllm_advisor.knowledge.attention import attention_choice
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity

_ONE_ENGINE = Version("0.11.0")  # from here on V1 is the only engine
_FLASH_ATTENTION_3, _BLACKWELL = 90, 100  # compute capability x 10


@rule(
    id="KV003",
    name="kv-cache-dtype-not-supported",
    severity=Severity.ERROR,
    needs=("model", "accelerator"),
    flags=("kv_cache_dtype", "attention_backend"),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Ask for the backend vLLM would take."""
    model, node = subject.model, subject.node
    if model is None or node is None:
        return
    dtype = str(subject.args.get("kv_cache_dtype", "auto"))
    declared = model.quantization.kv_cache_dtype if model.quantization else None
    if dtype == "auto" and declared:
        dtype = declared
    if dtype == "auto":
        return
    backend = subject.args.get("attention_backend")
    if backend is not None:
        raise NotModelledError(f"which KV cache dtypes {backend} takes is not recorded")
    gpu = node.accelerator
    if _v1_refuses(subject, dtype, gpu.capability):
        yield Fault(
            message=f"VLLM_USE_V1=1 of vLLM {subject.engine.version} does not take "
            f"--kv-cache-dtype {dtype} on {gpu.name}",
            location=subject.place("kv_cache_dtype"),
            fix="leave VLLM_USE_V1 out, --kv-cache-dtype auto, or vLLM 0.11",
            evidence=(("kv_cache_dtype", dtype), ("compute_capability", gpu.capability / 10)),
        )
        return
    try:
        attention_choice(model, gpu.capability, gpu.name, dtype)
    except InfeasibleError as refused:
        yield Fault(
            message=refused.what,
            location=subject.place("kv_cache_dtype"),
            fix=refused.fix or "--kv-cache-dtype auto",
            evidence=(("kv_cache_dtype", dtype), ("compute_capability", gpu.capability / 10)),
        )


def _v1_refuses(subject: Subject, dtype: str, capability: int) -> bool:
    """Whether the V1 engine is asked for by name and has no FP8 cache here; V0 would take over."""
    env, version = subject.command.env, Version(subject.engine.version)
    if version >= _ONE_ENGINE or env.get("VLLM_USE_V1") != "1" or not dtype.startswith("fp8"):
        return False
    if subject.model is None or subject.model.uses_mla or "VLLM_ATTENTION_BACKEND" in env:
        return False
    return capability not in (_FLASH_ATTENTION_3, _BLACKWELL)
