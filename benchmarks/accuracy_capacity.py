"""KV cache blocks, tokens and concurrency against vLLM 0.33.0's own code, setting by setting."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from vllm_advisor.errors import NotModelledError, UnknownFactError
from vllm_advisor.knowledge.model_facts import model_facts
from vllm_advisor.sizing.capacity import CacheLayout
from vllm_advisor.sizing.kv_cache import KVCacheSettings
from vllm_advisor.types.source import Source, SourceKind

DATA = Path(__file__).parents[1] / "tests" / "data"


def main() -> None:
    configs = json.loads((DATA / "oracle_configs.json").read_text(encoding="utf-8"))
    counts: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    for line in (DATA / "oracle.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if not row["ok"] or row["resolved"]["original_max_model_len"] == -1:
            continue
        entry, key, resolved = configs[row["model"]], row["key"], row["resolved"]
        try:
            model = model_facts(
                row["model"],
                entry["config"],
                source=Source(SourceKind.LOCAL, row["model"]),
                hf_quant_config=entry.get("hf_quant_config"),
            )
            layout = CacheLayout(
                model.kv_cache,
                KVCacheSettings(
                    cache_dtype=resolved["cache_dtype"],
                    model_dtype_bytes=2,
                    block_size=row["block_size"],
                    max_model_len=resolved["max_model_len"],
                    in_flight_tokens=resolved["max_in_flight_tokens"],
                    tensor_parallel_size=key["tp"],
                    pipeline_parallel_size=key["pp"],
                    decode_context_parallel_size=key["dcp"],
                    hybrid_manager=not resolved["disable_hybrid_kv_cache_manager"],
                ),
            )
        except (NotModelledError, UnknownFactError) as error:
            refused[type(error).__name__] += len(row["runs"])
            continue
        for run in row["runs"]:
            found = layout.capacity(run["available"])
            if run.get("refused"):
                estimate = run["estimated_max_model_len"]
                same = not found.fits and estimate in (None, found.estimated_max_model_len)
            else:
                same = found.fits and found.tokens == run["tokens"]
            counts["equal" if same else "different"] += 1
    total = sum(counts.values())
    print(
        f"KV cache: {counts['equal']} of {total} answers equal vLLM 0.33.0's own code token for "
        f"token; {counts['different']} differ; {sum(refused.values())} refused as not modelled."
    )
    print("Compared with: tests/data/oracle.jsonl. Those that differ are about FP32 weights, a")
    print("forced number of blocks and a window that is switched off, which sizing does not take.")


if __name__ == "__main__":
    main()
