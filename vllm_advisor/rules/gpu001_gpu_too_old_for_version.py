"""The released builds of this vLLM version have no kernels for the GPU.

## What it checks
The GPU's compute capability against the least one that the version's wheels and images are built
for: 7.5 (Turing) since 0.20, 7.0 (Volta) before.

## Why it matters
The server stops at its first kernel: "CUDA error: no kernel image is available for execution on the
device".

## Bad
```bash
# gpu: v100-sxm2-32 x 1
vllm serve Qwen/Qwen3-8B --dtype half --max-model-len 8192
```

## Good
```bash
# gpu: l4 x 1
vllm serve Qwen/Qwen3-8B --max-model-len 8192
```

## Fix
A newer GPU, an older vLLM, or a build of your own with a CUDA toolkit that still knows the GPU.

## References
- https://github.com/vllm-project/vllm/pull/39878
- https://docs.vllm.ai/en/latest/getting_started/installation/gpu
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.knowledge.quantization_support import build_capability
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity

_VOLTA, _LAST_VOLTA = 70, "0.19.1"


@rule(id="GPU001", name="gpu-too-old-for-version", severity=Severity.ERROR, needs=("accelerator",))
def check(subject: Subject) -> Iterator[Fault]:
    """Compare the GPU with what the version is built for."""
    if subject.node is None:
        return
    gpu, version = subject.node.accelerator, subject.engine.version
    least = build_capability(version)
    if gpu.capability >= least:
        return
    older = f"vLLM {_LAST_VOLTA} or older, or " if gpu.capability >= _VOLTA else ""
    yield Fault(
        message=f"{gpu.name} has compute capability {gpu.capability / 10}, and the builds of vLLM "
        f"{version} begin at {least / 10}",
        location=subject.command.location,
        fix=f"{older}a GPU of compute capability {least / 10} or more, or a build from source",
        evidence=(
            ("compute_capability", gpu.capability / 10),
            ("least_capability", least / 10),
            ("vllm_version", version),
        ),
    )
