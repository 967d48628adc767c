"""Why vLLM did not start, and what to change: from the text it printed and the rules of check."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from vllm_advisor.api.startup_facts import StartupFacts
from vllm_advisor.types.finding import Finding
from vllm_advisor.types.startup import LogRefusal, StartupLog
from vllm_advisor.units import GIB

_MOST_UTILIZATION = 0.95  # above it, PRF006 warns
# Rules of check that look at what a refusal of the kind is about.
_RULES: Mapping[str, tuple[str, ...]] = {
    "kv-cache-below-one-request": ("KV001", "KV002"),
    "no-memory-for-kv-cache": ("KV001", "KV002"),
    "state-blocks-below-sequences": ("KV004",),
    "compute-capability": ("GPU001", "QNT001", "QNT002", "KV003"),
    "attention-backend": ("KV003", "GPU001"),
    "context-above-model": ("CTX001", "CTX002", "CTX003"),
    "heads-not-divisible": ("PAR001",),
    "more-ranks-than-gpus": ("PAR002", "PAR003"),
    "batched-tokens": ("SCH001", "SCH002"),
    "quantization": ("QNT002", "QNT003"),
    "flag-value": ("FLG002", "FLG003"),
    "remote-code": ("SEC007", "SEC008"),
    "gated-model": ("SEC011",),
}


_SEVERAL = ("KV001", "KV002")  # rules whose fix is a list of alternatives


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedRefusal:
    """A refusal, what it means and what to change; each fix is enough by itself."""

    refusal: LogRefusal
    meaning: str
    fixes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "kind": self.refusal.kind,
            "line": self.refusal.line,
            "count": self.refusal.count,
            "text": self.refusal.text,
            "figures": dict(self.refusal.figures),
            "meaning": self.meaning,
            "fixes": list(self.fixes),
        }


def explain_refusals(
    log: StartupLog, facts: StartupFacts, findings: list[Finding]
) -> tuple[ExplainedRefusal, ...]:
    """Each refusal of the log with its meaning, from its own figures and the findings."""
    return tuple(_explained(refusal, log, facts, findings) for refusal in log.refusals)


def _explained(
    refusal: LogRefusal, log: StartupLog, facts: StartupFacts, findings: list[Finding]
) -> ExplainedRefusal:
    meaning = "vLLM stopped with this error; it is none that is known here"
    fixes: list[str] = []
    if refusal.kind in _MEANINGS:
        meaning, fixes = _MEANINGS[refusal.kind](refusal.figures, log, facts)
    rules = _RULES.get(refusal.kind, ())
    for finding in findings:
        if finding.rule in rules and finding.fix:
            fixes += _alternatives(finding, refusal)
    return ExplainedRefusal(
        refusal=refusal, meaning=meaning, fixes=tuple(dict.fromkeys(f for f in fixes if f))
    )


def _alternatives(finding: Finding, refusal: LogRefusal) -> list[str]:
    """The fixes of a finding, each by itself; a length that vLLM measured is better than ours."""
    alternatives = finding.fix.split(", or ") if finding.rule in _SEVERAL else [finding.fix]
    measured = "longest" in refusal.figures
    return [
        f"{fix} [{finding.rule}]"
        for fix in alternatives
        if not (measured and fix.startswith("--max-model-len"))
    ]


Explained = tuple[str, list[str]]
Figures = Mapping[str, str]


def _one_request(figures: Figures, log: StartupLog, facts: StartupFacts) -> Explained:
    length, longest = int(figures["length"]), figures.get("longest")
    if "needed" not in figures:
        meaning = f"one request of {length:,} tokens does not fit into the KV cache"
    else:
        needed, available = _gib(figures["needed"]), _gib(figures["available"])
        meaning = (
            f"one request of {length:,} tokens needs {needed:.2f} GiB of KV cache, and "
            f"{available:.2f} GiB are left: {needed - available:.2f} GiB are missing"
        )
    fixes = [f"--max-model-len {longest}, the longest that fits"] if longest else []
    if "needed" in figures:
        fixes += _utilization(log, _gib(figures["needed"]) - _gib(figures["available"]))
    if not longest and facts.accelerator is None:
        fixes.append("a smaller --max-model-len (--gpu NAME computes which)")
    return meaning, fixes


def _no_memory(figures: Figures, log: StartupLog, facts: StartupFacts) -> Explained:
    del figures
    left = log.smallest("kv_cache")
    gib = left.value / GIB if left is not None and isinstance(left.value, int) else None
    said = "" if gib is None else f": {gib:.2f} GiB are left"
    meaning = f"weights, activations and CUDA graphs take all that vLLM may use{said}"
    fixes = _utilization(log, None if gib is None else -gib)
    if not fixes and facts.accelerator is None:
        fixes.append(
            "a larger --gpu-memory-utilization, quantized weights or more GPUs "
            "(--gpu NAME computes what is enough)"
        )
    return meaning, fixes


def _not_free(figures: Figures, log: StartupLog, facts: StartupFacts) -> Explained:
    del log, facts
    free, total = _gib(figures["free"]), _gib(figures["total"])
    share, asked = _gib(figures["share"]), _gib(figures["requested"])
    meaning = (
        f"vLLM wants {asked:.2f} GiB ({share:g} of {total:.2f} GiB), and {free:.2f} GiB are free: "
        f"{total - free:.2f} GiB are in use by others"
    )
    fixes = ["end what else holds memory of the GPU (nvidia-smi lists it), also a vLLM that hangs"]
    lower = math.floor(100 * free / total) / 100 if total > 0 else 0
    if lower > 0:
        fixes.append(f"--gpu-memory-utilization {lower:g}")
    return meaning, fixes


def _out_of_memory(figures: Figures, log: StartupLog, facts: StartupFacts) -> Explained:
    del facts
    if "requests" in figures:
        meaning = f"the sampler's warm-up with {figures['requests']} requests ran out of GPU memory"
        return meaning, ["a smaller --max-num-seqs", "a smaller --gpu-memory-utilization"]
    wanted = figures.get("wanted", "memory")
    free = f", and {figures['free']} were free" if "free" in figures else ""
    if log.first("weights") is None:
        meaning = f"loading the weights asked for {wanted}{free}"
        return meaning, ["more GPUs (--tensor-parallel-size)", "quantized weights"]
    if log.first("kv_tokens") is None:
        meaning = f"the profile run asked for {wanted}{free}"
        return meaning, ["a smaller --max-num-batched-tokens", "a smaller --max-num-seqs"]
    meaning = f"with the KV cache allocated, {wanted} more were asked for{free}"
    return meaning, ["a smaller --gpu-memory-utilization", "a smaller --max-num-seqs"]


def _state_blocks(figures: Figures, log: StartupLog, facts: StartupFacts) -> Explained:
    del log, facts
    meaning = (
        f"{figures['sequences']} sequences may run at once, and there is state for "
        f"{figures['blocks']}"
    )
    return meaning, [f"--max-num-seqs {figures['blocks']}"]


def _architecture(figures: Figures, log: StartupLog, facts: StartupFacts) -> Explained:
    del log
    version = facts.logged_version or (facts.engine.version if facts.engine else "")
    meaning = (
        f"vLLM{f' {version}' if version else ''} and the Transformers beside it do not know "
        f"{figures['name']}"
    )
    return meaning, ["a vLLM that has the model; where it is new, with a newer Transformers, too"]


def _unknown_flag(figures: Figures, log: StartupLog, facts: StartupFacts) -> Explained:
    del log
    words = [w.partition("=")[0] for w in figures["words"].split() if w.startswith("-")]
    version = f" {facts.engine.version}" if facts.engine else ""
    meaning = f"the parser of vLLM{version} does not know {', '.join(words) or figures['words']}"
    if facts.engine is None:
        return meaning, ["--vllm-version VERSION, to hear which flags are near"]
    known = [s for flag in facts.engine.flags.values() for s in (*flag.spellings, *flag.negations)]
    near = [(w, get_close_matches(w, known, n=1)) for w in words]
    return meaning, [f"{close[0]} instead of {word}" for word, close in near if close]


def _flag_value(figures: Figures, log: StartupLog, facts: StartupFacts) -> Explained:
    del log, facts
    return f"{figures['flag']} does not take its value: {figures['why']}", []


def _capability(figures: Figures, log: StartupLog, facts: StartupFacts) -> Explained:
    del log, facts
    gpu = figures.get("gpu", "the GPU")
    meaning = f"{gpu} has compute capability {figures['present']}, and {figures['least']} is needed"
    fixes = ["--dtype half"] if "gpu" in figures else ["weights in another quantization"]
    return meaning, [*fixes, "a newer GPU"]


def _context(figures: Figures, log: StartupLog, facts: StartupFacts) -> Explained:
    del log, facts
    meaning = (
        f"the model's config allows {int(figures['limit']):,} tokens, and --max-model-len asks for "
        f"{int(figures['length']):,}"
    )
    return meaning, [f"--max-model-len {figures['limit']}"]


def _heads(figures: Figures, log: StartupLog, facts: StartupFacts) -> Explained:
    del log, facts
    heads, ranks = int(figures["heads"]), int(figures["ranks"])
    fitting = next((n for n in range(ranks - 1, 0, -1) if heads % n == 0), 1)
    meaning = f"{heads} attention heads cannot be split over {ranks} GPUs"
    return meaning, [f"--tensor-parallel-size {fitting}"]


def _ranks(figures: Figures, log: StartupLog, facts: StartupFacts) -> Explained:
    del log, facts
    meaning = f"the parallel sizes ask for {figures['ranks']} GPUs, and {figures['gpus']} are seen"
    return meaning, [
        f"parallel sizes whose product is at most {figures['gpus']}",
        "more GPUs for the container (CUDA_VISIBLE_DEVICES, nvidia.com/gpu)",
    ]


def _batched(figures: Figures, log: StartupLog, facts: StartupFacts) -> Explained:
    del log, facts
    meaning = (
        f"max_num_batched_tokens is {figures['tokens']} and may not be below {figures['least']}"
    )
    return meaning, [f"--max-num-batched-tokens {figures['least']}"]


def _quantization(figures: Figures, log: StartupLog, facts: StartupFacts) -> Explained:
    del log, facts
    return f"--quantization does not fit the checkpoint or the version: {figures['name']}", [
        "leave --quantization out: vLLM reads it from the checkpoint"
    ]


def _fixed(meaning: str, *fixes: str) -> Callable[[Figures, StartupLog, StartupFacts], Explained]:
    def explained(figures: Figures, log: StartupLog, facts: StartupFacts) -> Explained:
        del figures, log, facts
        return meaning, list(fixes)

    return explained


_MEANINGS: Mapping[str, Callable[[Figures, StartupLog, StartupFacts], Explained]] = {
    "kv-cache-below-one-request": _one_request,
    "no-memory-for-kv-cache": _no_memory,
    "memory-not-free": _not_free,
    "out-of-memory": _out_of_memory,
    "state-blocks-below-sequences": _state_blocks,
    "architecture-unknown": _architecture,
    "flag-unknown": _unknown_flag,
    "flag-value": _flag_value,
    "compute-capability": _capability,
    "attention-backend": _fixed(
        "no attention backend takes this model, cache dtype and GPU together",
        "--kv-cache-dtype auto, and no --attention-backend",
    ),
    "context-above-model": _context,
    "heads-not-divisible": _heads,
    "more-ranks-than-gpus": _ranks,
    "batched-tokens": _batched,
    "quantization": _quantization,
    "remote-code": _fixed(
        "the checkpoint brings code of its own",
        "--trust-remote-code, once you have read that code",
    ),
    "gated-model": _fixed(
        "the Hub gives this model only to those who accepted its terms",
        "accept them on its page and set HF_TOKEN",
    ),
}


def _utilization(log: StartupLog, missing_gib: float | None) -> list[str]:
    """The share of the GPU that makes up for what is missing, where the log has both figures."""
    total, share = log.largest("total"), log.first("gpu_memory_utilization")
    given = log.arguments.get("gpu_memory_utilization") or (share.value if share else None)
    if missing_gib is None or total is None or not isinstance(given, int | float):
        return []
    if not isinstance(total.value, int) or total.value <= 0:
        return []
    enough = math.ceil(100 * (given + missing_gib * GIB / total.value) + 0.5) / 100
    return [f"--gpu-memory-utilization {enough:g}"] if enough <= _MOST_UTILIZATION else []


def _gib(text: str) -> float:
    return float(text.replace(",", ""))
