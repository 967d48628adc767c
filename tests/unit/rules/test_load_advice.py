"""What the rules about load say: the numbers, by hand."""

from __future__ import annotations

import pytest
from checked_subject import subjects

from vllm_advisor.rules.registry import run_rules
from vllm_advisor.types.finding import Finding, Severity

LLAMA = "vllm serve meta-llama/Llama-3.1-8B-Instruct"
GIB = 1 << 30


def _findings(script: str) -> dict[str, Finding]:
    (subject,) = subjects(script)
    return {f.rule: f for f in run_rules(subject)[0]}


def _evidence(finding: Finding) -> dict[str, str | int | float]:
    return dict(finding.evidence)


def _traffic(requests: int, *, gpu: str = "h100-sxm x 1") -> str:
    return (
        f"# gpu: {gpu}\n# class: {{name: chat, prompt_tokens: 6000, output_tokens: 1000, "
        f"concurrent_requests: {requests}}}\n{LLAMA} --max-model-len 8192 --max-num-seqs 32 "
    )


def test_prf001_counts_blocks_and_servers() -> None:
    # 128 KiB a token, 2 MiB a block of 16: 4 GiB are 2,048 blocks. A request of 7,000 tokens takes
    # 438, ten and the null block 4,381: 10 x 2,048 / 4,381 = 4.67 run, and three servers hold all.
    # In FP8 there are 4,096 blocks, which is still too few.
    found = _findings(_traffic(10) + "--kv-cache-memory-bytes 4G")["PRF001"]
    assert _evidence(found) == {
        "requests_at_once": 10,
        "requests_that_fit": 4,
        "blocks_needed": 4381,
        "num_gpu_blocks": 2048,
        "kv_cache_tokens": 32768,
    }
    assert found.fix == (
        "3 of these servers, or --max-num-seqs 4, so that others wait and none is preempted"
    )


def test_prf001_names_an_fp8_cache_where_it_is_enough() -> None:
    # 8 x 438 + 1 = 3,505 blocks: more than 2,048, less than the 4,096 of an FP8 cache.
    command = _traffic(8) + "--kv-cache-memory-bytes 4G"
    found = _findings(command)["PRF001"]
    assert found.fix.startswith("2 of these servers, or --kv-cache-dtype fp8, or --max-num-seqs 4")
    assert "PRF001" not in _findings(f"{command} --kv-cache-dtype fp8")


def test_prf001_counts_each_engine_by_itself() -> None:
    # Two engines of 2,048 blocks take five requests each: 5 x 438 + 1 = 2,191.
    one = _traffic(10, gpu="h100-sxm x 2") + "--kv-cache-memory-bytes 4G --data-parallel-size 2"
    assert _evidence(_findings(one)["PRF001"])["blocks_needed"] == 2191
    four = _traffic(8, gpu="h100-sxm x 2") + "--kv-cache-memory-bytes 4G --data-parallel-size 2"
    assert "PRF001" not in _findings(four)


def test_prf002_names_both_numbers() -> None:
    # 16 GiB and a block hold one request of 131,072 tokens. A quarter of it is 2,048 blocks, one of
    # them the null block: 2,047 x 16 tokens.
    found = _findings(
        f"# gpu: h100-sxm x 1\n{LLAMA} --max-model-len 131072 --max-num-seqs 4 "
        f"--kv-cache-memory-bytes {16 * GIB + (2 << 20)}"
    )["PRF002"]
    assert found.fix == (
        "--max-num-seqs 1: the KV cache holds 1.00 requests of 131,072 tokens; or "
        "--max-model-len 32752, of which 4 fit"
    )


def test_ctx011_counts_prompt_and_answer() -> None:
    # infiniflow/ragflow#5646: 3,478 + 5,120 = 8,598 > 8,192; 8,192 - 3,478 = 4,714.
    found = _findings(
        "# class: {name: rag, prompt_tokens: 3478, output_tokens: 5120, concurrent_requests: 1}\n"
        f"{LLAMA} --max-model-len 8192"
    )["CTX011"]
    assert "3,478 + 5,120 = 8,598 tokens" in found.message
    assert found.fix == "--max-model-len 9216, or max_tokens of 4,714 at most"
    assert found.severity is Severity.ERROR


@pytest.mark.parametrize(
    ("model", "needs", "begins"),
    [
        ("Qwen/Qwen2.5-14B-Instruct", "whole_document", "a model whose context holds 141,000"),
        ("Qwen/Qwen2.5-14B-Instruct", "lookup", "retrieval that sends the passages"),
        ("Qwen/Qwen2.5-14B-Instruct", "recent_only", "a bounded history"),
        ("Qwen/Qwen3-8B", "whole_document", "--max-model-len 61000 --hf-overrides '"),
    ],
)
def test_ctx012_says_what_helps(model: str, needs: str, begins: str) -> None:
    # Both publish YaRN x4 over 32,768 tokens: 61,000 are within it, 141,000 are not.
    prompt = 60000 if begins.startswith("--") else 140000
    script = (
        f"# class: {{name: books, prompt_tokens: {prompt}, output_tokens: 1000, "
        f"concurrent_requests: 1, needs: {needs}}}\nvllm serve {model}"
    )
    found = _findings(script)["CTX012"]
    assert found.fix.startswith(begins)
    if begins.startswith("--"):
        assert not _findings(f"{script} {found.fix.partition(', or ')[0]}"), "the advice works"


def test_ctx007_names_the_smallest_factor() -> None:
    # 60,500 / 32,768 = 1.85: in quarters 2.
    rope = (
        '{"rope_parameters": {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1000000, '
        '"original_max_position_embeddings": 32768}, "max_position_embeddings": 131072}'
    )
    found = _findings(
        "# class: {name: chat, prompt_tokens: 900, output_tokens: 100, concurrent_requests: 9}\n"
        "# class: {name: books, prompt_tokens: 60000, output_tokens: 500, concurrent_requests: 1}\n"
        f"vllm serve Qwen/Qwen3-8B --max-model-len 131072 --hf-overrides '{rope}'"
    )["CTX007"]
    assert "with factor 2: 60,500 / 32,768" in found.fix


def test_prf003_counts_steps() -> None:
    # 60,000 / 4,096 = 14.6 steps.
    found = _findings(
        "# gpu: h100-sxm x 1\n"
        "# class: {name: chat, prompt_tokens: 900, output_tokens: 100, concurrent_requests: 4}\n"
        "# class: {name: books, prompt_tokens: 60000, output_tokens: 500, concurrent_requests: 1}\n"
        f"{LLAMA} --max-model-len 65536 --max-num-batched-tokens 4096"
    )["PRF003"]
    assert _evidence(found)["steps"] == 15
    assert found.fix.startswith("--long-prefill-token-threshold 2048")


def test_prf003_has_no_threshold_for_recurrent_layers() -> None:
    found = _findings(
        "# gpu: h100-sxm x 4\n"
        "# class: {name: chat, prompt_tokens: 900, output_tokens: 100, concurrent_requests: 4}\n"
        "# class: {name: books, prompt_tokens: 60000, output_tokens: 500, concurrent_requests: 1}\n"
        "vllm serve Qwen/Qwen3-Next-80B-A3B-Instruct -tp 4 --max-model-len 65536 --max-num-seqs 64"
    )["PRF003"]
    assert found.fix == "an instance of its own for books"


def test_prf004_is_a_bound_by_the_peak() -> None:
    # A layer has 4,096 x (4,096 + 2 x 1,024) + 4,096^2 + 3 x 4,096 x 14,336 = 218,103,808
    # parameters, 32 of them 6.98e9. 2 x 6.98e9 x 4,096 / 121e12 = 472.5 ms; 4,096 x 100 / 472.5 =
    # 866, in steps of 256 768.
    found = _findings(
        "# gpu: l4 x 1\n# class: {name: voice, prompt_tokens: 4000, output_tokens: 50, "
        "concurrent_requests: 6, slo: {itl_ms: 100}}\n"
        f"{LLAMA} --max-model-len 8192 --max-num-seqs 8 --max-num-batched-tokens 4096"
    )["PRF004"]
    assert _evidence(found)["least_step_ms"] == 472.5
    assert found.fix.startswith("--max-num-batched-tokens 768 or less")


def test_prf012_counts_what_is_computed_again() -> None:
    # Five turns that each send the history again: 4/5 of the median prompt was there before.
    found = _findings(
        "# class: {name: chat, prompt_tokens: 2000, output_tokens: 100, concurrent_requests: 4, "
        "requests_per_document: 5}\nvllm serve Qwen/Qwen3-8B --no-enable-prefix-caching"
    )["PRF012"]
    assert _evidence(found) == {"reused_tokens_per_request": 1600}


def test_prf016_names_the_fewest_ranks() -> None:
    found = _findings(
        "# gpu: l40s x 4\n"
        "# class: {name: mail, prompt_tokens: 2000, output_tokens: 500, concurrent_requests: 8}\n"
        "vllm serve Qwen/Qwen3-8B --max-model-len 8192 --max-num-seqs 16 -tp 4"
    )["PRF016"]
    assert found.fix == "--tensor-parallel-size 1, and up to 4 replicas on the same GPUs"


def test_prf020_gives_the_seats() -> None:
    found = _findings(
        "# gpu: h100-sxm x 1\n"
        "# class: {name: chat, prompt_tokens: 1000, output_tokens: 200, concurrent_requests: 60}\n"
        f"{LLAMA} --max-model-len 8192 --max-num-seqs 16"
    )["PRF020"]
    assert found.fix == "--max-num-seqs 60"
    assert "60 requests at once, and 16 may run: 44 wait" in found.message


def test_spd001_counts_tokens_that_are_free() -> None:
    # Weights of 16.06e9 B and 200 x 50 + 1 blocks of 2 MiB are read in 37.0e9 / 3.35e12 = 11.1 ms;
    # a token of a step is 2 x 6.98e9 / 989e12 = 14.1 us: 783 tokens, 156 requests of 5.
    found = _findings(
        "# gpu: h100-sxm x 1\n"
        "# class: {name: chat, prompt_tokens: 500, output_tokens: 300, concurrent_requests: 200}\n"
        f"{LLAMA} --max-model-len 8192 --max-num-seqs 256 --speculative-config "
        """'{"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4}'"""
    )["SPD001"]
    evidence = _evidence(found)
    assert evidence["tokens_per_step"] == 1000
    assert evidence["tokens_for_free"] == pytest.approx(783, rel=0.02)
    assert "run at most 15" in found.fix


def test_spd002_says_what_more_tokens_bring() -> None:
    # 1 + 0.8 + ... + 0.8^16 = (1 - 0.8^17) / 0.2 = 4.9; with four 3.4.
    found = _findings(
        "vllm serve meta-llama/Llama-3.3-70B-Instruct -tp 8 --speculative-config "
        """'{"method": "draft_model", "model": "m/d", "num_speculative_tokens": 16}'"""
    )["SPD002"]
    assert "a step gives 4.9 tokens" in found.message
    assert found.fix == "num_speculative_tokens 4: 3.4 tokens per step"


@pytest.mark.parametrize(
    ("script", "rule"),
    [
        ("# gpu: l40s x 1\n" + LLAMA + " --gpu-memory-utilization 0.98", "PRF006"),
        (
            "# gpu: l40s x 1\n" + LLAMA + " --max-model-len 65536 --gpu-memory-utilization 0.7",
            "PRF007",
        ),
        (
            "# gpu: l4 x 1\nvllm serve Qwen/Qwen3-8B --max-model-len 8192 --max-num-seqs 512",
            "PRF009",
        ),
        (
            "# gpu: l4 x 1\nvllm serve Qwen/Qwen3-8B --max-model-len 12288 --max-num-seqs 16 --max-num-batched-tokens 16384",
            "PRF010",
        ),
        ("# gpu: gb10 x 1\nvllm serve Qwen/Qwen3-8B --gpu-memory-utilization 0.95", "PRF019"),
    ],
)
def test_the_advised_value_ends_the_finding(script: str, rule: str) -> None:
    found = _findings(script)
    assert set(found) == {rule}
    flag, value = found[rule].fix.partition(":")[0].split()
    assert rule not in _findings(f"{script} {flag} {value}"), "the last value counts"
