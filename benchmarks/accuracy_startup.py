"""The memory budget against real start-up logs: weights, overhead, KV cache bytes and tokens.

vLLM 0.17 to 0.19 logs are compared with the constants of their family; their batch defaults are
those of the newest known version, which were the same on H100.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path

from vllm_advisor.api.models import find_model
from vllm_advisor.api.settings import resolve_settings
from vllm_advisor.knowledge.engines import load_engine
from vllm_advisor.knowledge.gpus import find_gpu
from vllm_advisor.knowledge.overheads import load_overheads
from vllm_advisor.sizing.instance import size_instance
from vllm_advisor.units import GIB

DATA = Path(__file__).parents[1] / "tests" / "data" / "startups.jsonl"
FAMILIES = {"0.1": "0.19.0", "0.2": "0.27.0", "0.3": "0.33.0"}


def main() -> None:
    misses: dict[str, list[float]] = {"weights": [], "kv_cache": [], "kv_cache_share": []}
    print(f"{'model':38} {'gpu':20} {'TP':>2}  weights GiB     KV cache GiB            tokens")
    print(f"{'':38} {'':20} {'':>2}  ours   logged   ours   logged  miss      ours      logged")
    for line in DATA.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        model, gpu = find_model(row["model"]), find_gpu(row["gpu"])
        settings = resolve_settings(model, load_engine(), gpu, row["engine_args"]).settings
        family = next(v for k, v in FAMILIES.items() if row["version"].startswith(k))
        figures = size_instance(model, settings, accelerator=gpu, overheads=load_overheads(family))
        if figures.budget is None:
            continue
        ours = {
            name: int(getattr(figures.budget, name).value) / GIB for name in ("weights", "kv_cache")
        }
        logged = row["logged_gib"]
        miss = ours["kv_cache"] / logged["kv_cache"] - 1
        misses["weights"].append(abs(ours["weights"] / logged["weights"] - 1))
        misses["kv_cache"].append(abs(ours["kv_cache"] - logged["kv_cache"]))
        misses["kv_cache_share"].append(abs(miss))
        print(
            f"{row['model']:38} {row['gpu']:20} {settings.tensor_parallel_size:>2}"
            f" {ours['weights']:6.2f} {logged['weights']:8.2f} {ours['kv_cache']:7.2f}"
            f" {logged['kv_cache']:8.2f} {miss:+6.1%} {figures.capacity.tokens:10,}"
            f" {row['kv_tokens']:11,}"
        )
    print(
        f"\n{len(misses['weights'])} logs. "
        f"Weights: mean miss {statistics.mean(misses['weights']):.2%}."
        f" KV cache: mean miss {statistics.mean(misses['kv_cache_share']):.2%}, median "
        f"{statistics.median(misses['kv_cache_share']):.2%}, largest "
        f"{max(misses['kv_cache']):.2f} GiB."
    )
    print(
        "Compared with: llm-d-planner's published 0.89 % (weights) and 0.34 % (KV) on the H100 "
        "runs its constants are fitted to."
    )
    print("Tokens of sliding-window models before 0.21 are counted otherwise by vLLM itself.")


if __name__ == "__main__":
    main()
