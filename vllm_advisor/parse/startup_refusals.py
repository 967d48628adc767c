"""The messages with which vLLM refuses to start, and the figures in them.

Texts of vLLM 0.8 to 0.33; a refusal that has none of these forms is kept as it was printed.
"""

from __future__ import annotations

import re

_NUMBER = r"-?\d[\d,]*(?:\.\d+)?"


def _form(kind: str, pattern: str) -> tuple[str, re.Pattern[str]]:
    return kind, re.compile(pattern)


REFUSALS: tuple[tuple[str, re.Pattern[str]], ...] = (
    _form(
        "kv-cache-below-one-request",
        rf"To serve at least one request with the models?'s max seq len \((?P<length>\d+)\), "
        rf"\((?P<needed>{_NUMBER}) Gi?B KV cache is needed, which is larger than the available "
        rf"KV cache memory \((?P<available>{_NUMBER}) Gi?B\)"
        r"(?:.{0,80}estimated maximum model length is (?P<longest>\d+))?",
    ),
    _form(
        "kv-cache-below-one-request",
        r"The model's max seq len \((?P<length>\d+)\) is larger than the maximum number of "
        r"tokens that can be stored in KV cache \((?P<longest>\d+)\)",
    ),
    _form(
        "no-memory-for-kv-cache",
        r"No available memory for the cache blocks",
    ),
    _form(
        "memory-not-free",
        rf"Free memory on device(?: \S+)? \((?P<free>{_NUMBER})/(?P<total>{_NUMBER}) GiB\) on "
        rf"startup is less than (?:desired GPU memory utilization|the engine's budget[\w ']*) "
        rf"\((?P<share>{_NUMBER}), (?P<requested>{_NUMBER}) GiB\)",
    ),
    _form(
        "out-of-memory",
        r"CUDA out of memory occurred when warming up sampler with (?P<requests>\d+) dummy",
    ),
    _form(
        "out-of-memory",
        rf"CUDA out of memory\. Tried to allocate (?P<wanted>{_NUMBER} [GM]iB)"
        rf"(?:.{{0,80}}total capacity of (?P<total>{_NUMBER} [GM]iB))?"
        rf"(?:.{{0,40}}of which (?P<free>{_NUMBER} [GM]iB) is free)?",
    ),
    _form(
        "state-blocks-below-sequences",
        r"max_num_seqs \((?P<sequences>\d+)\) exceeds (?:the number of )?available Mamba cache "
        r"blocks \((?P<blocks>\d+)\)",
    ),
    _form(
        "architecture-unknown",
        r"Model architectures \[(?P<name>[^\]]*)\] (?:are|is) not supported",
    ),
    _form(
        "architecture-unknown",
        r"has model type `(?P<name>[^`]*)` but Transformers does not recognize",
    ),
    _form(
        "flag-unknown",
        r"error: unrecognized arguments: (?P<words>.+)",
    ),
    _form(
        "flag-value",
        r"error: argument (?P<flag>-[^:]+): (?P<why>.+)",
    ),
    _form(
        "compute-capability",
        r"Minimum capability: (?P<least>\d+)\.? Current capability: (?P<present>\d+)",
    ),
    _form(
        "compute-capability",
        r"only supported on GPUs with compute capability of at least (?P<least>[\d.]+?)\. Your "
        r"(?P<gpu>.+?) GPU has compute capability (?P<present>\d+\.\d+)",
    ),
    _form(
        "attention-backend",
        r"No valid attention backend found for (?P<device>\w+)",
    ),
    _form(
        "context-above-model",
        r"User-specified max_model_len \((?P<length>\d+)\) is greater than the derived "
        r"max_model_len \((?:\w+=)?(?P<limit>\d+)",
    ),
    _form(
        "heads-not-divisible",
        r"Total number of attention heads \((?P<heads>\d+)\) must be divisible by tensor "
        r"parallel size \((?P<ranks>\d+)\)",
    ),
    _form(
        "more-ranks-than-gpus",
        r"World size \((?P<ranks>\d+)\) is larger than the number of available GPUs "
        r"\((?P<gpus>\d+)\)",
    ),
    _form(
        "batched-tokens",
        r"max_num_batched_tokens \((?P<tokens>\d+)\) (?:is smaller than max_model_len|must be "
        r"greater than or equal to max_num_seqs) \((?P<least>\d+)\)",
    ),
    _form(
        "quantization",
        r"Unknown quantization method: (?P<name>[\w-]+)",
    ),
    _form(
        "quantization",
        r"Quantization method specified in the model config \((?P<name>[\w-]+)\) does not "
        r"match",
    ),
    _form(
        "remote-code",
        r"set the option `?trust_remote_code=True`?",
    ),
    _form(
        "gated-model",
        r"(?:Cannot access gated repo|You are trying to access a gated repo)",
    ),
)
# A Python error at the end of a traceback; wrappers that only point at it say nothing.
ERROR = re.compile(
    r"(?:^|\s)(?P<type>(?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)): (?P<text>\S.*)"
    r"|^(?P<value>Value error), (?P<reason>\S.*)"  # pydantic's, on a line of its own
)
WRAPPERS = (
    "validation error for",
    "Engine core initialization failed",
    "Engine process failed to start",
    "WorkerProc initialization failed",
    "cancelled",
)
