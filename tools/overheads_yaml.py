"""The text of profiles/memory/overheads.yaml."""

from __future__ import annotations

from typing import Any

from overhead_logs import Family, percentile

from vllm_advisor.sizing.overhead import RankLink

HEAD = """\
# Memory a vLLM worker takes beside weights and KV cache, fitted to public start-up logs.
# Written by tools/fit_overheads.py from tests/data/startups.jsonl: change those, not this.
# Newest family first; the first whose specifier holds is taken. Formulas: sizing/overhead.py.
# terms: how far each term misses the logged one, in GiB. kv_cache: KV cache bytes predicted from
# logged weights, trust A and B; kv_cache_held_out: the same for models that the fit did not see
# (each half of the models in turn). GPUs that share the host's memory are left out of both.
"""
_NOTES = {
    "vllm-0.33-and-later": (
        "No log of this version is public. Its profile runs the sampler a second time with FP32",
        "logits, penalties and top-k/top-p (v1/worker/gpu/model_runner.py#_dummy_sampler_run), as",
        "the runner of 0.17 to 0.20 did, whose fit is taken; everything else is that of 0.29.",
    ),
    "vllm-0.29-to-0.32": (
        "One runner for all models from 0.29 on. Its sampler's profile keeps 16-bit logits only:",
        "half of the FP32 ones; penalties keep int32 counts of rows x vocabulary. Graph base and",
        "non-torch from Llama-3.1-8B on A100 (0.31.0), the rest from the families below.",
    ),
    "vllm-0.26-to-0.28": (
        "Fitted to logs of 0.21 to 0.28. Graph estimates are taken from the cache. Activations as",
        "in 0.17 to 0.20: the same runner except for dense models from 0.27 on, whose runner set",
        "no graphs aside. Sparse attention on DeepSeek-V4-Flash and GLM-5.2.",
    ),
    "vllm-0.21-to-0.25": (
        "As 0.26 to 0.28 but for sparse attention, from one refused start of DeepSeek-V4-Flash",
        "(0.22, GH200, weights of the same checkpoint in another log).",
    ),
    "vllm-0.17-to-0.20": (
        "One campaign on H100 (llm-d-planner) and five others. Graphs came on top of the budget.",
    ),
    "vllm-0.10-to-0.16": (
        "The sampler sorted the whole vocabulary: 9.6 times its logits. Experts' scratch was freed",
        "before it ran.",
    ),
    "vllm-0.8-to-0.9": (
        "The V1 engine of 0.8 and 0.9, taken to be as that of 0.10. Logs in pieces: a KV cache of",
        "4.05 GiB for 4.01 (Qwen2.5-7B, A10G), 72.2 for 71.6 (Llama-2-7B, H20), 4.55 for 4.00",
        "(Qwen3-30B-A3B, four A10).",
    ),
}


def render(families: list[Family], before: list[dict[str, Any]]) -> str:
    """The file's text."""
    lines = [HEAD + "families:"]
    for family in families:
        lines.append(f'- versions: "{family.versions}"')
        lines += [f"  # {line}" for line in _NOTES[family.name]]
        lines += [f"  # {line}" for line in family.comments]
        c = family.constants
        lines += [f"  {key}: {c[key]:.3f}" for key in ("logits_factor", "hidden_factor")]
        lines.append(f"  forward_hidden_factor: {c['forward_hidden_factor']:.2f}")
        lines.append(f"  constant_gib: {c['constant']:.3f}")
        lines.append(f"  moe_workspace: {str(family.moe_workspace).lower()}")
        lines.append(f"  multimodal_gib: {c['multimodal']:.3f}")
        lines.append(f"  sparse_mib_per_token: {c['sparse_mib_per_token']:.3f}")
        lines.append(f"  sampler_state_factor: {c['sampler_state_factor']:.5f}")
        lines += [
            f"  non_torch_{link.value}_gib: {c[f'non_torch_{link.value}']:.3f}" for link in RankLink
        ]
        graph = ("graph_base", "graph_layer", "graph_latent")
        lines += [f"  {name}_gib: {c[name]:.4f}" for name in graph]
        lines.append("  graph_reference_sizes: 51")
        lines.append(f"  graph_actual_share: {c['graph_actual_share']:.2f}")
        lines.append(f"  graphs_set_aside: {str(family.graphs_set_aside).lower()}")
        lines.append(f"  sample: {family.sample}")
        lines.append(f"  error_gib: {family.error:.2f}")
        lines.append(f"  source: measured:overheads#{family.name}")
        lines.append("  terms:" + ("" if any(family.terms.values()) else " {}"))
        lines += [
            f"    {name}: {{logs: {len(v)}, median: {percentile(v, 0.5):.3f}, "
            f"p90: {percentile(v, 0.9):.3f}, max: {percentile(v, 1.0):.3f}}}"
            for name, v in family.terms.items()
            if v
        ]
    lines.append(
        "# Gone before vLLM takes its first snapshot (total less free, in GiB): driver and"
    )
    lines.append(
        "# CUDA context, with NCCL where tensor_parallel. Medians; WSL and shared cards out."
    )
    lines.append("before_start:")
    lines += [
        f"- {{gpu: {b['gpu']}, tensor_parallel: {str(b['tensor_parallel']).lower()}, "
        f"gib: {b['gib']:.2f}, min: {b['min']:.2f}, max: {b['max']:.2f}, logs: {b['logs']}}}"
        for b in before
    ]
    return "\n".join(lines) + "\n"
