"""Memory beside weights and cache: each term by hand, capture sizes, and the room left."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from vllm_advisor.api.models import find_model
from vllm_advisor.knowledge.overheads import load_overheads
from vllm_advisor.sizing.cuda_graphs import (
    capture_sizes,
    captured_sizes,
    cuda_graph_bytes,
    graph_actual_bytes,
    graph_estimate_bytes,
)
from vllm_advisor.sizing.overhead import (
    RankLink,
    activation_bytes,
    headroom_bytes,
    hidden_bytes,
    logits_bytes,
    mlp_bytes,
    moe_workspace_bytes,
    non_torch_bytes,
    rank_link,
)
from vllm_advisor.sizing.overhead_notes import overhead_assumptions
from vllm_advisor.sizing.overhead_shape import OverheadShape, shape_of
from vllm_advisor.types.engine import Overheads
from vllm_advisor.types.source import Confidence

GIB = 1 << 30
MIB = 1 << 20
LLAMA_8B = OverheadShape(
    vocab_size=128_256, hidden_size=4096, intermediate_size=14_336, num_hidden_layers=32
)
QWEN3_30B = OverheadShape(
    vocab_size=151_936,
    hidden_size=2048,
    intermediate_size=0,
    num_hidden_layers=48,
    num_experts=128,
    num_experts_per_tok=8,
    moe_intermediate_size=768,
)
PLAIN = Overheads(
    versions=">=1",
    logits_factor=2.0,
    hidden_factor=1.0,
    forward_hidden_factor=4.0,
    constant_bytes=10 * MIB,
    moe_workspace=True,
    multimodal_bytes=7 * MIB,
    sparse_bytes_per_token=1024,
    sampler_state_factor=0.5,
    non_torch_bytes=1 * MIB,
    non_torch_pipeline_bytes=2 * MIB,
    non_torch_pcie_bytes=3 * MIB,
    non_torch_nvlink_bytes=4 * MIB,
    non_torch_unified_bytes=5 * MIB,
    graph_base_bytes=100 * MIB,
    graph_layer_bytes=51 * MIB,
    graph_latent_bytes=50 * MIB,
    graph_reference_sizes=51,
    graph_actual_share=0.5,
    graphs_set_aside=True,
    sample=8,
    error_bytes=1,
    source="measured:overheads#test",
)


def test_tensors_of_the_profile_run() -> None:
    # 128,256 = 2,004 x 64: no padding. 256 rows x 128,256 x 4 B.
    assert logits_bytes(LLAMA_8B, 256) == 131_334_144
    # 49,155 is padded to 769 x 64 = 49,216.
    assert logits_bytes(replace(LLAMA_8B, vocab_size=49_155), 1) == 49_216 * 4
    assert hidden_bytes(LLAMA_8B, 8192) == 8192 * 4096 * 2 == 64 * MIB
    # Gate, up and product: 3 x 14,336 x 2 B a token; TP 4 holds a quarter.
    assert mlp_bytes(LLAMA_8B, 8192, 1) == 8192 * 14_336 * 6
    assert mlp_bytes(LLAMA_8B, 8192, 4) == 8192 * 3584 * 6
    quantized = replace(LLAMA_8B, eight_bit_activations=True)
    assert mlp_bytes(quantized, 8192, 1) == 8192 * 14_336 * 7


def test_scratch_of_experts() -> None:
    # Qwen3-30B-A3B: 8,192 tokens x 8 experts x (max(768, 2048) + max(1536, 2048)) x 2 B = 0.5 GiB;
    # the log of vLLM 0.19 on H100 has 2.68 of activations, 0.50 above a dense model's 2.18.
    assert moe_workspace_bytes(QWEN3_30B, 8192, 1) == 8192 * 8 * 4096 * 2 == GIB // 2
    # DeepSeek-V2-Lite, TP 2: 8,192 x 6 x (max(704, 2048) + max(1408, 2048)) x 2 B.
    lite = replace(QWEN3_30B, num_experts_per_tok=6, moe_intermediate_size=1408)
    assert moe_workspace_bytes(lite, 8192, 2) == 8192 * 6 * 4096 * 2
    # Whole experts are not divided: max(1408, 2048) + max(2816, 2048).
    assert moe_workspace_bytes(lite, 8192, 2, expert_parallel=True) == 8192 * 6 * 4864 * 2


def test_experts_get_the_tokens_of_all_engines() -> None:
    def peak(engines: int) -> int:
        return activation_bytes(
            QWEN3_30B,
            PLAIN,
            max_num_seqs=8,
            max_num_batched_tokens=8192,
            data_parallel_size=engines,
        )

    # The scratch of 8,192 tokens is 0.5 GiB, their hidden states are 8,192 x 2,048 x 2 B = 32 MiB:
    # four engines gather 32,768 tokens, one gathers nothing.
    assert peak(4) - peak(1) == 3 * GIB // 2 + 4 * 32 * MIB
    dense = activation_bytes(LLAMA_8B, PLAIN, max_num_seqs=8, max_num_batched_tokens=8192)
    assert dense == activation_bytes(
        LLAMA_8B, PLAIN, max_num_seqs=8, max_num_batched_tokens=8192, data_parallel_size=4
    )


def test_sampler_decides_with_many_rows() -> None:
    # 2 x logits of 1,024 rows + 1 x hidden; 2 x 525,336,576 = 1,050,673,152 B is more than the
    # layer's 704,643,072 + 4 x 64 MiB = 973,078,528 B.
    got = activation_bytes(LLAMA_8B, PLAIN, max_num_seqs=1024, max_num_batched_tokens=8192)
    assert got == 2 * 525_336_576 + 64 * MIB + 10 * MIB


def test_widest_layer_decides_with_few_rows() -> None:
    got = activation_bytes(LLAMA_8B, PLAIN, max_num_seqs=8, max_num_batched_tokens=8192)
    assert got == 8192 * 14_336 * 6 + 4 * 64 * MIB + 10 * MIB
    # Rows never exceed the tokens of a step.
    few = activation_bytes(LLAMA_8B, PLAIN, max_num_seqs=1024, max_num_batched_tokens=16)
    assert few == 2 * logits_bytes(LLAMA_8B, 16) + 16 * 4096 * 2 + 10 * MIB


def test_what_is_kept_beside_the_peak() -> None:
    def peak(shape: OverheadShape, overheads: Overheads = PLAIN, **sizes: int) -> int:
        return activation_bytes(
            shape, overheads, max_num_seqs=1024, max_num_batched_tokens=8192, **sizes
        )

    base = peak(LLAMA_8B)
    assert peak(replace(LLAMA_8B, multimodal=True)) == base + 7 * MIB
    assert peak(LLAMA_8B, pipeline_parallel_size=2) == base + 2 * 64 * MIB
    held = peak(QWEN3_30B)
    assert held - peak(QWEN3_30B, replace(PLAIN, moe_workspace=False)) == GIB // 2
    # Sparse attention's scratch belongs to the layer: 1 KiB x 8,192 tokens hide below the sampler.
    assert peak(replace(QWEN3_30B, sparse_attention=True)) == held
    sparse = replace(PLAIN, sparse_bytes_per_token=MIB)
    forward = 4 * 32 * MIB + 8192 * MIB
    assert peak(replace(QWEN3_30B, sparse_attention=True), sparse) == forward + 10 * MIB + GIB // 2


def test_capture_sizes() -> None:
    grid = (1, 2, 4, *range(8, 256, 8), *range(256, 513, 16))
    assert capture_sizes(1024, 8192, 90) == grid
    assert captured_sizes(1024, 8192, 90) == 3 + 31 + 17 == 51
    # Data-centre Blackwell (10.x) goes on to 1,024 in 32 more steps; 12.0 does not.
    assert captured_sizes(1024, 8192, 100) == captured_sizes(1024, 8192, 103) == 83
    assert captured_sizes(1024, 8192, 120) == 51
    # The widest decode batch is added off the grid: 2 x 10 = 20, and 10 itself.
    assert capture_sizes(10, 8192, 90) == (1, 2, 4, 8, 10, 16)
    assert capture_sizes(1, 8192, 90) == (1, 2)
    # max_num_batched_tokens caps the sizes and is one of them.
    assert capture_sizes(256, 300, 80)[-3:] == (272, 288, 300)
    # gpt-oss sets 1,024 whatever the sequences; then no decode batch is added.
    assert capture_sizes(10, 8192, 90, max_capture_size=1024)[-1] == 1024
    assert 10 not in capture_sizes(10, 8192, 90, max_capture_size=1024)
    assert capture_sizes(4, 8192, 90, interactivity=True) == (1, 2, 3, 4, 5, 6, 7, 8)


def test_capture_sizes_with_speculative_tokens() -> None:
    # 3 draft tokens: queries of 4. 2 x 4 x 4 = 32; whole requests of 1, 2, 4: 4, 8, 16 are there.
    assert capture_sizes(4, 4096, 120, num_speculative_tokens=3) == (1, 2, 4, 8, 16, 24, 32)
    # 2 draft tokens: queries of 3; 3, 6, 12 (4 requests) and 15 (all 5) are added to 1 to 24.
    sizes = capture_sizes(5, 4096, 90, num_speculative_tokens=2)
    assert sizes == (1, 2, 3, 4, 6, 8, 12, 15, 16, 24)


def test_graphs() -> None:
    # 100 + 51 x 32 layers x 51 / 51 sizes; a third of the sizes takes a third of the layers' part.
    assert graph_estimate_bytes(LLAMA_8B, PLAIN, sizes=51) == (100 + 51 * 32) * MIB
    assert graph_estimate_bytes(LLAMA_8B, PLAIN, sizes=17) == (100 + 17 * 32) * MIB
    assert graph_estimate_bytes(LLAMA_8B, PLAIN, sizes=0) == 0
    half = graph_estimate_bytes(LLAMA_8B, PLAIN, sizes=51, pipeline_parallel_size=2)
    assert half == (100 + 51 * 16) * MIB
    latent = replace(LLAMA_8B, latent_attention=True)
    assert graph_estimate_bytes(latent, PLAIN, sizes=51) == (150 + 51 * 32) * MIB
    assert graph_actual_bytes(LLAMA_8B, PLAIN, sizes=51) == (50 + 51 * 16) * MIB
    before_021 = replace(PLAIN, graphs_set_aside=False)
    assert cuda_graph_bytes(LLAMA_8B, PLAIN, sizes=51) == (100 + 51 * 32) * MIB
    assert cuda_graph_bytes(LLAMA_8B, before_021, sizes=51) == 0


@pytest.mark.parametrize(
    ("ranks", "link", "buffers"),
    [
        ({"tensor_parallel_size": 1, "nvlink": True}, RankLink.NONE, 1),
        (
            {"tensor_parallel_size": 1, "pipeline_parallel_size": 2, "nvlink": True},
            RankLink.PIPELINE,
            2,
        ),
        (
            {"tensor_parallel_size": 2, "pipeline_parallel_size": 2, "nvlink": False},
            RankLink.PCIE,
            3,
        ),
        ({"tensor_parallel_size": 8, "nvlink": True}, RankLink.NVLINK, 4),
        (
            {"tensor_parallel_size": 2, "nvlink": False, "unified_memory": True},
            RankLink.UNIFIED,
            5,
        ),
    ],
)
def test_non_torch_by_link(ranks: dict[str, Any], link: RankLink, buffers: int) -> None:
    assert rank_link(**ranks) is link
    # Half of 64 rows of logits stays for penalties: 64 x 128,256 x 4 / 2 B.
    got = non_torch_bytes(LLAMA_8B, PLAIN, link=link, max_num_seqs=64)
    assert got == buffers * MIB + 64 * 128_256 * 2


def test_llama_on_a100_as_logged() -> None:
    # vLLM 0.31.0, A100 80GB, 79.25 GiB x 0.92 = 72.91: weights 15.0, consumed 15.26, activations
    # with the graph estimate 1.44, KV cache 56.21. The constants of its family close on it.
    overheads = load_overheads("0.31.0")
    active = activation_bytes(LLAMA_8B, overheads, max_num_seqs=256, max_num_batched_tokens=2048)
    graphs = cuda_graph_bytes(LLAMA_8B, overheads, sizes=51)
    assert (active + graphs) / GIB == pytest.approx(1.44, abs=0.01)
    other = non_torch_bytes(LLAMA_8B, overheads, link=RankLink.NONE, max_num_seqs=256)
    assert other / GIB == pytest.approx(0.26, abs=0.01)
    # The same start on 0.33, whose profile adds the sampler's FP32 pass: within 1 % of 56.21.
    newest = load_overheads("0.33.0")
    active = activation_bytes(LLAMA_8B, newest, max_num_seqs=256, max_num_batched_tokens=2048)
    spent = active + graphs + other
    assert 72.91 - 15.0 - spent / GIB == pytest.approx(56.21, rel=0.01)


def test_shape_of_a_model() -> None:
    assert shape_of(find_model("meta-llama/Llama-3.1-8B-Instruct"), multimodal=False) == LLAMA_8B
    # All 48 layers have experts: its intermediate_size of 6,144 belongs to no layer.
    assert shape_of(find_model("Qwen/Qwen3-30B-A3B"), multimodal=False) == QWEN3_30B
    # DeepSeek-V2-Lite's first layer is dense.
    lite = shape_of(find_model("deepseek-ai/DeepSeek-V2-Lite"), multimodal=False)
    assert (lite.intermediate_size, lite.latent_attention) == (10_944, True)
    assert shape_of(find_model("Qwen/Qwen3-32B-FP8"), multimodal=False).eight_bit_activations
    gpt_oss = shape_of(find_model("openai/gpt-oss-120b"), multimodal=False)
    assert gpt_oss.max_capture_size == 1024


def test_few_logs_lower_confidence() -> None:
    (fitted,) = overhead_assumptions(LLAMA_8B, PLAIN)
    assert fitted.lowers_to is Confidence.MEDIUM
    assert "8 start-up logs of vLLM >=1" in fitted.text
    (thin,) = overhead_assumptions(LLAMA_8B, replace(PLAIN, sample=7))
    assert thin.lowers_to is Confidence.LOW
    _, scratch = overhead_assumptions(replace(LLAMA_8B, sparse_attention=True), PLAIN)
    assert scratch.lowers_to is Confidence.LOW


def test_headroom() -> None:
    def room(**changed: int) -> int:
        known = {
            "free_at_start": 79 * GIB,
            "requested": 75 * GIB,
            "activations": 0,
            "graphs_set_aside": 0,
            "graphs_actual": 1 * GIB,
            "warm_up": GIB // 2,
        }
        return headroom_bytes(**(known | changed))

    # Before 0.21 graphs come on top: 79 - 75 - 1 - 0.5 = 2.5 GiB.
    assert room() == 5 * GIB // 2
    # At 0.97 of 80 GiB nothing is left for them: 79 - 77.6 - 1 - 0.5 < 0.
    assert room(requested=776 * GIB // 10) < 0
    # Graphs set aside cover what capture takes; freed activations cover the warm-up.
    assert room(requested=79 * GIB, graphs_set_aside=GIB, activations=GIB) == GIB // 2
    assert room(requested=79 * GIB, graphs_set_aside=GIB) == -GIB // 2
