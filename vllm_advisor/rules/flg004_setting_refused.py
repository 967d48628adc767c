"""Settings that do not go together or with the model, where no other rule names the fault.

## What it checks
What sizing refuses on vLLM's behalf while it fills in the defaults: a quantization method that is
not the checkpoint's, a block size no attention backend takes. Faults that have a rule of their own
(lengths, parallel sizes, batch sizes, KV cache dtype) are left to it.

## Why it matters
vLLM refuses to start with the same words.

## Bad
```bash
# gpu: h100-sxm x 1
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192 --block-size 24
```

## Good
```bash
# gpu: h100-sxm x 1
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192 --block-size 32
```

## Fix
Each finding says what to write instead.

## References
- vllm:0.33.0:vllm/config/model.py#_verify_quantization
- vllm:0.33.0:vllm/platforms/cuda.py#get_attn_backend_cls
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.errors import InfeasibleError
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity

_OWN_RULE = (  # CTX001 to CTX003, PAR001, SCH001, KV003, QNT001
    "max_model_len",
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "decode_context_parallel_size",
    "max_num_batched_tokens",
    "kv_cache_dtype",
    "dtype",
)
_GPU = "--gpu"  # where it is too old for the checkpoint: QNT002


@rule(
    id="FLG004",
    name="setting-refused",
    severity=Severity.ERROR,
    needs=("model", "accelerator"),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Report the refusal that kept the instance from being sized."""
    refused = subject.sizing_error
    if not isinstance(refused, InfeasibleError):
        return
    flag = subject.engine.flag(refused.where)
    if refused.where == _GPU or (flag is not None and flag.dest in _OWN_RULE):
        return
    yield Fault(
        message=refused.what,
        location=subject.place(flag.dest if flag else ""),
        fix=refused.fix or f"another value of {refused.where or 'the setting'}",
        evidence=(("flag", refused.where),),
    )
