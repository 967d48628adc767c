"""Figures computed by hand, with the arithmetic written out."""

from __future__ import annotations

import pytest

from vllm_advisor import size
from vllm_advisor.errors import InfeasibleError, InputError, NotModelledError
from vllm_advisor.sizing.kv_cache import kv_heads_per_rank, stage_layers
from vllm_advisor.sizing.overhead import captured_sizes

GIB = 1 << 30
MIB = 1 << 20
LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


def test_llama_8b_128k() -> None:
    # 2 (K and V) x 32 layers x 8 KV heads x 128 x 2 B = 131,072 B per token.
    # x 131,072 tokens = 17,179,869,184 B = 16 GiB.
    report = size(LLAMA, gpu="a100-sxm4-80", vllm_version="0.32.0")
    capacity = report.figures.capacity
    assert capacity.bytes_per_token == 2 * 32 * 8 * 128 * 2 == 131_072
    assert capacity.request_bytes == 16 * GIB
    assert capacity.blocks_per_request == 131_072 // 16
    # Known log (vLLM 0.31.0, A100 80GB, utilisation 0.92): 460,496 tokens, 3.51x.
    assert capacity.tokens == pytest.approx(460_496, rel=0.002)
    assert capacity.max_concurrency == pytest.approx(3.51, abs=0.01)


def test_fp8_cache_halves_a_request() -> None:
    # On A100 FlashInfer takes an FP8 cache; half the element: 8 GiB per 128K request.
    report = size(LLAMA, gpu="a100-sxm4-80", kv_cache_dtype="fp8")
    assert report.figures.capacity.bytes_per_token == 65_536
    assert report.figures.capacity.request_bytes == 8 * GIB
    assert report.figures.capacity.max_concurrency == pytest.approx(7, abs=0.01)
    assert report.figures.attention_backend == "FLASHINFER"


def test_the_documents_formula_at_8k() -> None:
    # kv_cache_gb(32, 8, 128, 8192): 131,072 B x 8,192 = 1 GiB (a source prints 2.0).
    report = size(LLAMA, gpu="h100-sxm", max_model_len=8192)
    assert report.figures.capacity.request_bytes == GIB


def test_qwen_7b_32k() -> None:
    # 2 x 28 layers x 4 KV heads x 128 x 2 B = 57,344 B; x 32,768 = 1.75 GiB.
    report = size("Qwen/Qwen2.5-7B-Instruct", gpu="h100-sxm")
    assert report.figures.capacity.bytes_per_token == 57_344
    assert report.figures.capacity.request_bytes == 1.75 * GIB
    assert int(report.figures.capacity.max_concurrency) in (31, 32)


def test_llama_70b_tp4() -> None:
    # 2 x 80 x 8 / 4 heads per rank x 128 x 2 B = 81,920 B per token and rank: 10 GiB at 128K.
    report = size("meta-llama/Llama-3.3-70B-Instruct", gpu="h100-sxm", gpu_count=4)
    assert report.figures.capacity.bytes_per_token == 81_920
    assert report.figures.capacity.request_bytes == 10 * GIB
    assert int(report.figures.capacity.max_concurrency) == 3
    assert report.engine_args["tensor_parallel_size"] == 4


def test_deepseek_v3_keeps_its_cache_whole_on_every_rank() -> None:
    # 61 layers x (512 + 64) x 2 B = 70,272 B on every TP rank; x 131,072 = 8.578 GiB: of what
    # 139.8 GiB x 0.92 leave beside 79.5 GiB of weights and about 7 of overhead, five at most.
    report = size("deepseek-ai/DeepSeek-V3", gpu="h200-sxm", gpu_count=8, max_model_len=131072)
    capacity = report.figures.capacity
    assert capacity.bytes_per_token == 61 * 576 * 2 == 70_272
    assert capacity.request_bytes == 70_272 * 131_072
    assert 4.5 < capacity.max_concurrency < 5.5


@pytest.mark.parametrize(("dcp", "concurrency"), [(1, 5), (8, 42)])
def test_deepseek_v3_with_decode_context_parallelism(dcp: int, concurrency: int) -> None:
    # 46.1 GiB per rank / 8.578 GiB = 5.37; with DCP 8 a rank keeps an eighth: 42.99.
    report = size(
        "deepseek-ai/DeepSeek-V3",
        gpu_count=8,
        max_model_len=131072,
        decode_context_parallel_size=dcp,
        kv_cache_memory_bytes=round(46.1 * GIB),
    )
    assert int(report.figures.capacity.max_concurrency) == concurrency


def test_gemma_3_27b_at_128k_does_not_start_with_its_defaults() -> None:
    # Full: 10 layers, 131,072 / 16 = 8,192 blocks. Sliding: 52 layers in 6 groups, each
    # ceil((1,024 - 1 + 2 x 8,192) / 16) + 1 = 1,089 blocks. 8,192 + 6 x 1,089 = 14,726 blocks of
    # 10 layers x 131,072 B = 1.25 MiB: 17.98 GiB.
    report = size("google/gemma-3-27b-it", gpu="h100-sxm", max_model_len=131072)
    capacity = report.figures.capacity
    assert capacity.blocks_per_request == 8_192 + 6 * 1_089
    assert capacity.request_bytes == 14_726 * 10 * 131_072
    assert capacity.bytes_per_token is None  # no constant of the model
    assert not report.fits
    # Its 131,072 positions hold the factor of 8 already.
    assert report.figures.derived_max_model_len == 131_072
    # With chunks of 2,048: ceil((1,023 + 4,096) / 16) + 1 = 321 per group: 10,118 blocks, 12.35 GiB
    small = size(
        "google/gemma-3-27b-it",
        gpu="h100-sxm",
        max_model_len=131072,
        max_num_batched_tokens=2048,
    )
    assert small.figures.capacity.blocks_per_request == 8_192 + 6 * 321
    assert small.fits


def test_gpt_oss_120b_request() -> None:
    # 18 full layers: 131,072 / 16 = 8,192 blocks; 18 sliding (window 128):
    # ceil((127 + 16,384) / 16) + 1 = 1,033. 9,225 blocks x 18 x 32,768 B = 5.07 GiB.
    report = size("openai/gpt-oss-120b", gpu="h100-sxm")
    assert report.figures.capacity.blocks_per_request == 8_192 + 1_033
    assert report.figures.capacity.request_bytes == 9_225 * 18 * 32_768


def test_auto_fits_the_length_to_the_memory() -> None:
    # 8 GiB = 4,096 blocks of 2 MiB; one is kept back: 4,095 x 16 = 65,520 tokens.
    report = size(LLAMA, kv_cache_memory_bytes=8 * GIB, max_model_len="auto")
    assert report.settings.max_model_len == 65_520
    assert report.fits
    fixed = size(LLAMA, kv_cache_memory_bytes=8 * GIB)
    assert not fixed.fits
    assert fixed.figures.capacity.estimated_max_model_len == 65_520


def test_budget_sums_to_what_vllm_asks_for() -> None:
    memory = size(LLAMA, gpu="h100-sxm").to_dict()["memory"]
    # 81,090 MiB x 0.92, rounded up.
    assert memory["requested"] == -(-81_090 * MIB * 92 // 100)
    parts = ("weights", "activations", "cuda_graphs", "non_torch", "kv_cache")
    assert sum(memory[p] for p in parts) == memory["requested"]
    # Llama-3.1-8B has 8,030,261,248 parameters of 2 B, a RoPE table of 131,072 x 128 of 2 B, and
    # 32 x 4 scales of 4 B. Its matrices are whole multiples of 2 MiB.
    assert memory["weights"] == 2 * 8_030_261_248 + 131_072 * 128 * 2 + 32 * 4 * 4


def test_given_cache_bytes_are_taken_as_given() -> None:
    report = size(LLAMA, gpu="h100-sxm", kv_cache_memory_bytes="10GiB")
    assert report.to_dict()["memory"]["kv_cache"] == 10 * GIB
    assert report.figures.capacity.num_gpu_blocks == 10 * GIB // (16 * 131_072)
    with pytest.raises(InfeasibleError, match="more than NVIDIA L4 has"):
        size(LLAMA, gpu="l4", kv_cache_memory_bytes="10GiB")


def test_captured_sizes() -> None:
    # 1, 2, 4; 8..248 step 8 (31); 256..512 step 16 (17): 51.
    assert captured_sizes(1024, 8192, 90) == 51
    assert captured_sizes(256, 2048, 80) == 51
    # 2 x 32 = 64: 1, 2, 4, 8..64 step 8 (8): 11.
    assert captured_sizes(32, 8192, 90) == 11
    # 1,024 on compute capability 10.x: 256..1,024 step 16 (49): 83.
    assert captured_sizes(1024, 8192, 100) == 83


def test_layers_of_pipeline_stages() -> None:
    # 61 over 2: 30 each, the remainder to the stage before the last: 31 and 30.
    assert [len(s) for s in stage_layers(61, 2)] == [31, 30]
    assert [len(s) for s in stage_layers(62, 4)] == [15, 16, 16, 15]
    assert [i for s in stage_layers(62, 4) for i in s] == list(range(62))


def test_kv_heads_per_rank() -> None:
    assert kv_heads_per_rank(8, 4) == 2
    assert kv_heads_per_rank(4, 8) == 1  # replicated
    with pytest.raises(InfeasibleError, match="one has to divide the other"):
        kv_heads_per_rank(8, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tensor_parallel_size": 3}, r"attention heads \(32\) must be divisible by tensor"),
        ({"max_model_len": 200_000}, r"max_model_len \(200000\) is greater than the derived"),
        ({"max_num_batched_tokens": 64, "max_num_seqs": 256}, "greater than or equal to max_num"),
        (
            {"tensor_parallel_size": 4, "decode_context_parallel_size": 2},
            r"greater than the model's total number of KV heads \(8\)",
        ),
        ({"block_size": 24}, "not supported by any attention backend"),
    ],
)
def test_what_vllm_refuses_is_refused(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(InfeasibleError, match=message):
        size(LLAMA, gpu="h100-sxm", **arguments)


def test_fp8_cache_is_refused_where_no_backend_takes_it() -> None:
    with pytest.raises(InfeasibleError, match="FP8 KV cache is not supported"):
        size(LLAMA, gpu="t4", kv_cache_dtype="fp8")


@pytest.mark.parametrize(
    ("method", "same_as"),
    [("fp8_per_tensor", "fp8"), ("int8_per_channel_weight_only", None), ("nvfp4_per_token", None)],
)
def test_online_quantization_by_its_other_names(method: str, same_as: str | None) -> None:
    # The last two are for experts alone, of which this model has none.
    given = size(LLAMA, gpu="h100-sxm", quantization=method).figures
    assert given == size(LLAMA, gpu="h100-sxm", quantization=same_as).figures


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"max_modle_len": 1}, InputError, "no argument max_modle_len"),
        ({"gpu_memory_utilization": 92}, InputError, "not above 0 and at most 1"),
        ({"max_model_len": "long"}, InputError, "no token count"),
        ({"kv_cache_dtype": "fp8_inc"}, NotModelledError, "no attention backend is known"),
        ({"quantization_config": {"linear": "fp8"}}, NotModelledError, "not computed yet"),
        ({"quantization": "awq"}, NotModelledError, "not modelled"),
        ({"quantization": "fp8_per_block"}, NotModelledError, "not modelled"),
    ],
)
def test_what_is_not_known_is_said(
    arguments: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        size(LLAMA, gpu="h100-sxm", **arguments)


def test_no_gpu_and_no_bytes() -> None:
    with pytest.raises(InputError, match="memory of the GPU is not known"):
        size(LLAMA)


def test_qwen3_next_keeps_states_beside_its_cache() -> None:
    # A gated delta layer keeps 3 x (2 x 16 x 128 + 32 x 128) x 2 B = 49,152 B of convolution and
    # 32 x 128 x 128 x 2 B = 1,048,576 B of state. A full layer takes 2 x 2 x 256 x 2 B = 2,048 B
    # per token: 1,097,728 / 2,048 = 536 tokens, rounded up to chunks of 64: blocks of 576 tokens.
    # 36 + 12 layers make 4 groups of 12: 3 groups keep 3 states each per request (the current,
    # the last whole block and the one being written), the full one ceil(262,144 / 576) = 456.
    report = size("Qwen/Qwen3-Next-80B-A3B-Instruct", kv_cache_memory_bytes=40 * GIB)
    capacity = report.figures.capacity
    assert capacity.block_size == 576
    assert capacity.blocks_per_request == 3 * 3 + 456
    assert capacity.request_bytes == (9 + 456) * 12 * 576 * 2_048


def test_block_scaled_fp8_experts_and_tensor_parallelism() -> None:
    # Qwen3-235B FP8: experts of 1,536 over 8 ranks = 192, no multiple of the block of 128, but of
    # 64, to which vLLM refines the scales; over 32 ranks 48, of 16 only: below its least of 32.
    assert size("Qwen/Qwen3-235B-A22B-FP8", gpu="h100-sxm", gpu_count=8).fits
    with pytest.raises(InfeasibleError, match="moe_intermediate_size 1536"):
        size("Qwen/Qwen3-235B-A22B-FP8", gpu="h100-sxm", tensor_parallel_size=32, nnodes=4)
    with_ep = size(
        "Qwen/Qwen3-235B-A22B-FP8",
        gpu="h100-sxm",
        tensor_parallel_size=8,
        enable_expert_parallel=True,
        max_model_len=32768,
    )
    assert with_ep.fits


def test_lora_buffers() -> None:
    # Llama-3.2-3B: 28 layers, hidden 3,072, 24 heads x 128, 8 KV heads, intermediate 8,192.
    # A: 3 x 3,072 (q, k, v) + 2 x 3,072 (gate, up) + 3,072 (o) + 8,192 (down) = 26,624
    # B: 3,072 + 2,048 (q, k, v) + 16,384 (gate, up) + 2 x 3,072 (o, down) = 27,648
    # x rank 32 x 2 B x 28 layers x 2 adapters = 194,510,848 B
    plain = size("meta-llama/Llama-3.2-3B-Instruct", gpu="l40s").to_dict()
    lora = size(
        "meta-llama/Llama-3.2-3B-Instruct",
        gpu="l40s",
        enable_lora=True,
        max_loras=2,
        max_lora_rank=32,
    ).to_dict()
    extra = lora["memory"]["weights"] - plain["memory"]["weights"]
    assert extra == (26_624 + 27_648) * 32 * 2 * 28 * 2 == 194_510_848
