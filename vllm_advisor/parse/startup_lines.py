"""The lines of a start-up log that state a fact.

One table for all versions: a line that changed has one row for each form, with the versions that
print it. Read in vLLM's source (0.32.0) and in public logs of 0.8 to 0.31.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from vllm_advisor.units import GIB

EXACT = "exact bytes"  # printed as bytes, not rounded to GiB
_NUMBER = r"(-?\d[\d,]*(?:\.\d+)?)"
_GIB = rf"{_NUMBER} ?Gi?B"  # 0.8 writes GB and divides by 2**30 all the same


@dataclass(frozen=True, slots=True, kw_only=True)
class FactLine:
    """A form of a line: what it has to hold, and which facts its groups are.

    ``facts`` are ids with their units, one for each group of ``pattern``. ``hint`` is a word of the
    line: most lines have none of them, and looking for a word is cheap.
    """

    hint: str
    pattern: re.Pattern[str]
    facts: tuple[tuple[str, str], ...]
    versions: str


def _line(hint: str, pattern: str, versions: str, *facts: str) -> FactLine:
    pairs = tuple((name, unit) for name, _, unit in (fact.partition(":") for fact in facts))
    return FactLine(hint=hint, pattern=re.compile(pattern), facts=pairs, versions=versions)


FACT_LINES = (
    _line(
        "API server version",
        r"vLLM API server version v?(\d[\w.+-]*)",
        "0.8 to 0.14",
        "version:text",
    ),
    _line(" version ", r"█  ?version (\d[\w.+-]*)", "0.15 and later", "version:text"),
    _line(" model ", r"█  ?model +(\S.*?) *$", "0.15 and later", "banner_model:text"),
    _line(
        "Initializing a V",
        r"Initializing a V([01]) LLM engine \(v(\d[\w.+-]*)\)",
        "all",
        "engine:text",
        "engine_version:text",
    ),
    _line("device_config=", r"\bdevice_config=(\w+)", "all", "platform:text"),
    # The only place where most logs name the GPU: the tuned kernels of experts and FP8 blocks.
    _line("device_name=", r"device_name=(\w[\w-]*?)(?:,|\.json)", "all", "gpu_name:text"),
    _line(
        "Resolved architecture",
        r"Resolved architecture: (\w+)",
        "0.10 and later",
        "architecture:text",
    ),
    _line("max model len", r"Using max model len (\d+)", "0.9 and later", "max_model_len:tokens"),
    _line(
        "Chunked prefill",
        r"Chunked prefill is enabled with max_num_batched_tokens=(\d+)",
        "all",
        "max_num_batched_tokens:tokens",
    ),
    _line(
        "attention backend",
        r"Using (?:AttentionBackendEnum\.)?([A-Z][A-Z0-9_]+) attention backend",
        "0.15 and later",
        "attention_backend:text",
    ),
    _line(
        "_MLA backend",
        r"Using ((?:CPU|AMX)_MLA) backend\.",
        "0.32, on a CPU",
        "attention_backend:text",
    ),
    _line(
        " backend on V1",
        r"Using ([A-Z][\w ]*?) backend on V1 engine",
        "0.8 to 0.14",
        "attention_backend:text",
    ),
    _line(
        "oading took",
        rf"Model loading took {_GIB}(?: memory)? and {_NUMBER} seconds",
        "all",
        "weights:bytes",
        "load_seconds:seconds",
    ),
    _line(
        "model weights take",
        rf"model weights take {_GIB}; non_torch_memory takes {_GIB}; "
        rf"PyTorch activation peak memory takes {_GIB}; "
        rf"the rest of the memory reserved for KV Cache is {_GIB}",
        "0.8 and 0.9, V0 engine",
        "weights:bytes",
        "non_torch:bytes",
        "activations:bytes",
        "kv_cache:bytes",
    ),
    _line(
        "total_gpu_memory",
        rf"total_gpu_memory \({_GIB}\) x gpu_memory_utilization \({_NUMBER}\) = {_GIB}",
        "0.8 and 0.9, V0 engine",
        "total:bytes",
        "gpu_memory_utilization:share",
        "requested:bytes",
    ),
    _line(
        "Free memory on device",
        rf"Free memory on device(?: \S+)? \({_NUMBER}/{_GIB}\) on startup",
        "0.10 and later",
        "free_at_start:bytes",
        "total:bytes",
    ),
    _line(
        "GPU memory utilization",
        rf"[Dd]esired GPU memory utilization (?:is )?\({_NUMBER}, {_GIB}\)",
        "0.10 and later",
        "gpu_memory_utilization:share",
        "requested:bytes",
    ),
    _line(
        "for peak activation",
        rf"Actual usage is {_GIB} for weights?, {_GIB} for peak activation, {_GIB} for non-torch "
        rf"memory, and {_GIB} for CUDAGraph memory",
        "0.10 to 0.28",
        "weights_in_use:bytes",
        "activations:bytes",
        "non_torch:bytes",
        "cuda_graphs_captured:bytes",
    ),
    _line(
        "consumed memory",
        rf"Actual usage is {_GIB} for consumed memory \(weights \+ non-torch\), {_GIB} for peak "
        rf"activation, and {_GIB} for CUDAGraph memory",
        "0.29 and later",
        "consumed:bytes",
        # What the line calls so has the estimate for CUDA graphs in it
        # (vllm:0.32.0:vllm/v1/worker/gpu_worker.py#determine_available_memory).
        "activations_and_graphs:bytes",
        "cuda_graphs_captured:bytes",
    ),
    _line(
        "CUDA graph memory",
        rf"Estimated CUDA graph memory: {_GIB} total",
        "0.17 and later",
        "cuda_graphs_estimate:bytes",
    ),
    _line(
        "CUDA graph pool",
        rf"CUDA graph pool memory: {_GIB} \(actual\), {_GIB} \(estimated\)",
        "0.18 and later",
        "cuda_graphs_captured:bytes",
        "cuda_graphs_estimate:bytes",
    ),
    _line(
        "Graph capturing",
        rf"Graph capturing finished in {_NUMBER} secs, took {_GIB}",
        "all",
        "capture_seconds:seconds",
        "cuda_graphs_captured:bytes",
    ),
    _line(
        "KV cache memory", rf"Available KV cache memory: {_GIB}", "0.9 and later", "kv_cache:bytes"
    ),
    _line(
        "kv cache memory in use",
        r"Current kv cache memory in use is (\d+) bytes",
        "0.10 and 0.11",
        "kv_cache_in_use:exact bytes",
    ),
    _line(
        "KV cache as specified",
        rf"reserved {_GIB} memory for KV Cache as specified by kv_cache_memory_bytes",
        "0.10 and later",
        "kv_cache:bytes",
    ),
    _line(
        "for KV cache on node",
        rf"Explicitly set \({_NUMBER}/{_NUMBER}\) GiB for KV cache on node",
        "on a CPU",
        "kv_cache:bytes",
        "total:bytes",
    ),
    _line(
        "KV cache size",
        rf"([A-Z]+) KV cache size: {_NUMBER} tokens",
        "all",
        "device:text",
        "kv_tokens:tokens",
    ),
    _line(
        "Maximum concurrency",
        rf"Maximum concurrency for {_NUMBER} tokens per request: {_NUMBER}x",
        "all",
        "concurrency_tokens:tokens",
        "max_concurrency:requests",
    ),
    _line(
        "blocks: ",
        rf"# (?:cuda|GPU|CUDA) blocks: {_NUMBER}",
        "0.8 and 0.9, V0 engine",
        "num_gpu_blocks:blocks",
    ),
    _line(
        "num_gpu_blocks is",
        rf"num_gpu_blocks is: {_NUMBER}",
        "0.8 and later",
        "num_gpu_blocks:blocks",
    ),
    _line(
        "init engine",
        rf"init engine \(profile, create kv cache, warmup model\) took {_NUMBER} s",
        "all",
        "engine_seconds:seconds",
    ),
    _line("startup complete", r"Application (startup complete)", "all", "started:text"),
)


def read_number(text: str, unit: str) -> int | float | str:
    """A group of a fact line as bytes, a whole number or a share.

    Raises:
        ValueError: it is no number.
    """
    if unit == "text":
        return text
    number = float(text.replace(",", ""))
    if unit == EXACT:
        return int(number)
    if unit == "bytes":
        return round(number * GIB)
    return int(number) if unit in ("tokens", "blocks") else number
