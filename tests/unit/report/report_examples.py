"""Reports as plain data, as commands print them with ``--format json``."""

from plan_example import ENGINE, GIB, example_plan, infeasible_plan

from vllm_advisor.render.plan_file import figures_dict, plan_dict


def plan():
    return plan_dict(example_plan(), ENGINE)


def no_plan():
    return plan_dict(infeasible_plan(), ENGINE)


def size_report(**changes):
    figures = example_plan().deployment.instances[0].figures
    return {
        "schema_version": "1",
        "model": "example-org/Example-8B-Instruct",
        "gpu": "NVIDIA H100 80GB HBM3",
        "vllm_version": "0.33.0",
        "engine_args": {"kv_cache_dtype": "auto", "max_model_len": 8192},
        **figures_dict(figures, 8192),
        "verdict": "fits",
        "changes": [],
        **changes,
    }


def refused_report():
    # One request of 131,072 tokens needs 16 GiB (128 KiB a token); 5 GiB hold 40,960 tokens.
    report = size_report(
        fits=False,
        confidence="low",
        verdict="refused",
        refusal="To serve at least one request with the model's max seq len (131072), (16.00 GiB "
        "KV cache is needed, which is larger than the available KV cache memory (5.00 GiB).",
        changes=[
            {
                "flags": "--kv-cache-dtype fp8",
                "costs": "precision of K and V",
                "tokens": 81920,
                "max_concurrency": 0.62,
            }
        ],
    )
    report["memory"] = {**report["memory"], "weights": 64 * GIB, "kv_cache": 5 * GIB}
    report["kv_cache"] = {**report["kv_cache"], "request_bytes": 16 * GIB}
    report["max_model_len"] = {"configured": 131072, "derived_limit": 131072, "fits": 40960}
    return report


def hopeless_report():
    # 72 GiB requested - 80 of weights - 2 - 0.5 - 0.5 = -11: not a byte for the KV cache.
    report = refused_report()
    report["memory"] = {**report["memory"], "weights": 80 * GIB, "kv_cache": -11 * GIB}
    report["max_model_len"]["fits"] = 0
    report["refusal"] = "No available memory for the cache blocks."
    report["changes"] = []
    return report


def full_size_report():
    return size_report(
        training=[
            {
                "convention": "16-bit weights, FP32 Adam states",
                "component": part,
                "bytes": count,
                "size": f"{count // GIB}.00 GiB",
                "formula": formula,
            }
            for part, count, formula in (
                ("weights", 16 * GIB, "2 x parameters"),
                ("Adam moments", 64 * GIB, "8 x parameters"),
            )
        ],
        retention=[
            {
                "policy": policy,
                "kept_tokens": tokens,
                "bytes": count,
                "size": f"{count} B",
                "needle_at_10": seen,
                "vllm": "no flag sets a window",
                "nearest": nearest,
            }
            for policy, tokens, count, seen, nearest in (
                ("window 4096", 4096, GIB // 2, False, ["a model trained with a window"]),
                ("full", 8192, GIB, True, []),
            )
        ],
        attention_cost=[{"phase": "prefill", "flops": 1.5e12, "window": None}],
    )


def probe_report():
    gpu = {
        "index": 0,
        "name": "NVIDIA H100 80GB HBM3",
        "memory_total": 85520809984,
        "memory_used": 1 << 20,
        "compute_capability": [9, 0],
        "mig_enabled": False,
        "uuid": "GPU-0",
        "processes": [{"pid": 12, "memory_used": 512 << 20}],
    }
    return {
        "driver_version": "580.65.06",
        "cuda_driver_version": "13.0",
        "gpus": [gpu, {**gpu, "index": 1, "uuid": "GPU-1", "memory_used": None, "processes": []}],
        "topology": [["self", "nvlink"], ["nvlink", None]],
        "notes": ["GPU 1 did not answer everything."],
    }


def check_report():
    finding = {
        "rule": "KV001",
        "name": "kv-cache-too-small",
        "severity": "error",
        "confidence": "high",
        "message": "max_model_len 131072 does not fit: one request needs 16.00 GiB, 5.00 GiB are left.",
        "location": {"file": "deploy/values.yaml", "line": 14, "column": 9},
        "evidence": {"request_bytes": 16 * GIB, "max_model_len": 131072},
        "fix": "--max-model-len 40960, or --tensor-parallel-size 2",
    }
    return {
        "schema_version": "1",
        "vllm_version": "0.33.0",
        "findings": [
            finding,
            {
                **finding,
                "rule": "SH002",
                "name": "shared-memory",
                "severity": "warning",
                "confidence": "medium",
                "evidence": {},
                "fix": "",
            },
        ],
        "not_checked": [{"rule": "QA004", "reason": "the GPU is not known; give --gpu"}],
        "figures": {},
    }


def hostile(value, text):
    """The same report with every text replaced."""
    if isinstance(value, dict):
        return {key: hostile(item, text) for key, item in value.items()}
    if isinstance(value, list):
        return [hostile(item, text) for item in value]
    return text if isinstance(value, str) else value
