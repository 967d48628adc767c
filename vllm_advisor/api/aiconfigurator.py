"""NVIDIA's aiconfigurator: what a deployment is in its terms, and its answer.

It interpolates tables of measured kernels, where :mod:`~vllm_advisor.sizing.step_time` scales data
sheets. Its public facade has no continuous batching, so :func:`answer` does what its own
``cli_estimate`` does, over the modules below that: aiconfigurator_core 0.12.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from vllm_advisor.types.second_opinion import Question, SecondOpinion

PACKAGE, MODULE = "aiconfigurator-core", "aiconfigurator_core"
_BACKEND = "vllm"
# GPUs it has measurements of with vLLM, ours and its names.
_SYSTEMS = {
    "a100-sxm4-80": "a100_sxm",
    "b200": "b200_sxm",
    "b300": "b300_sxm",
    "gb200": "gb200",
    "gb300": "gb300",
    "h100-sxm": "h100_sxm",
    "h200-sxm": "h200_sxm",
    "l40s": "l40s",
    "rtx-pro-6000-server": "rtx_pro_6000_server",
}


def unanswerable(question: Question) -> str:
    """Why it is not asked; empty where it is."""
    load = question.concurrency
    if question.gpu not in _SYSTEMS:
        return f"it has no measurements of vLLM on {question.gpu}"
    if load is None:
        return "it knows a number of requests at once, not a rate at which they arrive"
    if (load / question.data_parallel_size) % 1:
        return f"{load:g} requests do not divide among {question.data_parallel_size} engines"
    if load > question.max_num_seqs * question.data_parallel_size:
        return "it has no queue, and more requests are there than max_num_seqs lets run"
    if question.quantization is not None:
        return "it knows no quantization while a model is loaded"
    if question.output < 2:
        return "it needs answers of at least two tokens"
    kv_cache = question.kv_cache_dtype
    if _kv_cache_mode(kv_cache) is None:
        return f"it has no measurements of a KV cache in {kv_cache}"
    return ""


def _kv_cache_mode(dtype: str) -> str | None:
    if dtype in ("auto", "bfloat16", "float16"):
        return "bfloat16"
    return "fp8" if dtype.startswith("fp8") else None


def answer(tool: str, version: str, question: Question) -> SecondOpinion:
    """What it says; raises whatever it raises.

    Args:
        tool: its name, for the answer.
        version: its version, for the answer.
        question: one that is not :func:`unanswerable`.
    """
    sdk = f"{MODULE}.sdk"
    config, builders = import_module(f"{sdk}.config"), import_module(f"{sdk}.config_builders")
    models, helpers = import_module(f"{sdk}.models"), import_module(f"{sdk}.models.helpers")
    tables, factory = (
        import_module(f"{sdk}.perf_database"),
        import_module(f"{sdk}.backends.factory"),
    )
    q, system = question, _SYSTEMS[question.gpu]
    release = tables.get_latest_database_version(system=system, backend=_BACKEND)
    database = tables.get_database_view(
        system, _BACKEND, release, allow_missing_data=False, database_mode="SILICON"
    )
    engines = q.data_parallel_size
    spread = q.tensor_parallel_size * engines
    built = builders.build_model_config(
        tp_size=q.tensor_parallel_size,
        pp_size=q.pipeline_parallel_size,
        attention_dp_size=engines if q.experts else 1,  # engines without experts share nothing
        moe_tp_size=(1 if q.expert_parallel else spread) if q.experts else None,
        moe_ep_size=(spread if q.expert_parallel else 1) if q.experts else None,
        kvcache_quant_mode=_kv_cache_mode(q.kv_cache_dtype),
    )
    # A folder, since it would look for an id that it does not bundle on the Hub.
    with TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps(q.config), encoding="utf-8")
        if q.quant_config is not None:
            quantized = json.dumps(q.quant_config)
            Path(folder, "hf_quant_config.json").write_text(quantized, encoding="utf-8")
        helpers.resolve_context_fmha_by_data(
            built, folder, database, _BACKEND, is_context_role=True
        )
        helpers.resolve_nvfp4_for_system(built, system, folder, backend_name=_BACKEND)
        model = models.get_model(folder, built, _BACKEND)
        summary = factory.get_backend(_BACKEND).run_agg(
            model,
            database,
            config.RuntimeConfig(
                isl=q.prompt,
                osl=q.output,
                prefix=q.cached,
                batch_size=int((q.concurrency or 1) / engines),
            ),
            ctx_tokens=min(q.prompt, q.max_num_batched_tokens),
        )
    data = f"vLLM {release}"
    reason = ""
    if summary.check_oom():
        reason = "by its count of memory this does not fit"
    elif summary.check_kv_cache_oom():
        reason = "by its count the KV cache does not hold so many requests"
    if reason:
        return SecondOpinion(tool=tool, version=version, data=data, reason=reason)
    found = summary.get_result_dict()
    alike = 1 if q.experts else engines
    return SecondOpinion(
        tool=tool,
        version=version,
        data=data,
        ttft_ms=round(float(found["ttft"]), 2),
        tpot_ms=round(float(found["tpot"]), 2),
        output_tokens_per_second=round(float(found["tokens/s"]) * alike, 2),
        answered=True,
    )
