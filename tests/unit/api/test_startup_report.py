"""report_startup(): predicted beside logged, what is missing, and why vLLM did not start."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vllm_advisor.api import report_startup
from vllm_advisor.errors import InputError, UnknownFactError
from vllm_advisor.units import GIB

LOGS = Path(__file__).parents[2] / "data" / "startup_logs"
A100 = LOGS / "a100-0.31.0.log"
H200 = LOGS / "h200-0.10.2-tp2.log"
TINY = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "vocab_size": 1024,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
}


def tiny(folder: Path, *, layers: int, length: int) -> str:
    config = {**TINY, "num_hidden_layers": layers, "max_position_embeddings": length}
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder)


def terms(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {term["term"]: term for term in data["comparison"]}


def of_text(text: str, **given: Any) -> dict[str, Any]:
    return report_startup("-", lines=text.split("\n"), **given).to_dict()


def test_every_term_of_a_start_on_an_a100() -> None:
    data = report_startup(A100, gpu="a100-sxm4-80").to_dict()
    assert (data["outcome"], data["gpu"]) == ("started", "a100-sxm4-80")
    found = terms(data)
    # 79.25 GiB x 0.92, of the memory that the log prints and not of the profile
    assert found["requested"]["predicted"] / GIB == pytest.approx(79.25 * 0.92, abs=1e-6)
    assert found["weights"]["logged"] == 15 * GIB
    assert found["weights"]["line"] == 2
    # consumed memory less weights: 15.26 - 15.00
    assert found["non-torch"]["logged"] / GIB == pytest.approx(0.26, abs=1e-9)
    assert found["activations and CUDA graphs"]["logged"] / GIB == pytest.approx(1.44, abs=1e-9)
    for term in ("weights", "KV cache", "KV cache tokens", "maximum concurrency"):
        assert abs(found[term]["difference_percent"]) < 0.3, term
    # 32 layers x 2 x 8 heads x 128 x 2 bytes are 128 KiB a token, in blocks of 16
    of_log = found["KV cache tokens, of the logged memory"]
    assert of_log["predicted"] == round(56.21 * GIB) // (131_072 * 16) * 16
    assert (of_log["logged"], of_log["difference"]) == (460_496, of_log["predicted"] - 460_496)


def test_the_log_names_the_gpu_and_a_path_needs_a_model() -> None:
    data = report_startup(H200).to_dict()
    assert data["gpu"] == "h200-sxm"  # of the kernels it tuned
    assert data["comparison"] == []
    assert "cannot read the model" in data["not_compared"]
    data = report_startup(H200, model="Qwen/Qwen3-Next-80B-A3B-Instruct").to_dict()
    # 47,878,721,024 bytes are left; what NCCL takes on two GPUs is what the fit misses
    assert data["comparison_summary"] == (
        "the KV cache is 0.84 GiB smaller than predicted: non-torch more by 0.83 GiB"
    )
    found = terms(data)
    assert abs(found["weights"]["difference_percent"]) < 0.1
    assert abs(found["activations"]["difference_percent"]) < 1
    assert found["non-torch"]["logged"] == round(1.38 * GIB)
    assert found["attention backend"]["predicted"] == found["attention backend"]["logged"]
    tokens = found["KV cache tokens"]
    assert (tokens["logged"], tokens["line"]) == (None, 18)
    assert "before 0.21" in tokens["note"]
    assert abs(found["maximum concurrency, of the logged memory"]["difference_percent"]) < 1


def test_without_a_gpu_the_logged_memory_is_enough_for_the_tokens() -> None:
    data = report_startup(A100).to_dict()
    assert list(terms(data)) == ["KV cache tokens, of the logged memory"]
    (missing,) = data["missing"]
    assert missing["fact"] == "gpu"
    assert "79.25 GiB" in missing["reason"]
    assert "--gpu" in missing["fix"]


def test_a_config_line_alone_says_what_it_leaves_open() -> None:
    log = LOGS / "gb200-0.26.0-tp4.log"
    data = report_startup(log, gpu="gb200", model="nvidia/GLM-5.2-NVFP4").to_dict()
    assert data["engine_args"]["enable_expert_parallel"] is True  # of Worker_TP0_EP0
    assert "max_num_seqs" in data["assumptions"][0]
    found = terms(data)
    assert found["KV cache tokens, of the logged memory"]["difference"] == 0
    assert found["attention backend"]["predicted"] == "FLASHINFER_MLA_SPARSE"
    assert found["CUDA graphs, estimate"]["logged"] == round(4.99 * GIB)


def test_drafts_of_a_config_line_are_said_to_be_left_out() -> None:
    data = of_text(
        "(EngineCore pid=1) Initializing a V1 LLM engine (v0.31.0) with config: "
        "model='meta-llama/Llama-3.1-8B-Instruct', speculative_config=SpeculativeConfig("
        "method='eagle'), max_seq_len=4096, tensor_parallel_size=1\n"
        "Available KV cache memory: 10.0 GiB\nGPU KV cache size: 81,920 tokens"
    )
    # 10 GiB over 128 KiB a token
    tokens = terms(data)["KV cache tokens, of the logged memory"]
    assert (tokens["predicted"], tokens["difference"]) == (81_920, 0)
    assert any("speculative_config could not be read" in a for a in data["assumptions"])


def test_a_cpu_holds_what_is_predicted(tmp_path: Path) -> None:
    log = LOGS / "cpu-0.32.0-started.log"
    data = report_startup(log, model=tiny(tmp_path, layers=4, length=8192)).to_dict()
    tokens = terms(data)["KV cache tokens, of the logged memory"]
    assert (tokens["predicted"], tokens["logged"]) == (524_288, 524_288)
    assert "CPU" in data["missing"][0]["reason"]


def test_windows_on_a_cpu_are_scheduled_as_it_does(tmp_path: Path) -> None:
    """What vLLM 0.32.0 printed on a CPU: 528,416 tokens; with a GPU's defaults it were 383,479."""
    windows = {
        "architectures": ["Gemma3ForCausalLM"],
        "model_type": "gemma3_text",
        "num_hidden_layers": 14,
        "max_position_embeddings": 16384,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": True,
        "sliding_window": 512,
        "sliding_window_pattern": 7,
        "layer_types": (["sliding_attention"] * 6 + ["full_attention"]) * 2,
        "query_pre_attn_scalar": 64,
        "hidden_activation": "gelu_pytorch_tanh",
    }
    (tmp_path / "config.json").write_text(json.dumps({**TINY, **windows}))
    data = of_text(
        "(EngineCore pid=1) INFO 01-01 00:00:00 [core.py:1] Initializing a V1 LLM engine (v0.32.0)"
        " with config: model='windows', max_seq_len=16384, device_config=cpu,"
        " tensor_parallel_size=1\n"
        "Available KV cache memory: 1.0 GiB\nCPU KV cache size: 528,416 tokens",
        model=str(tmp_path),
    )
    assert terms(data)["KV cache tokens, of the logged memory"]["predicted"] == 528_416


def test_blocks_of_mla_on_a_cpu_are_those_of_its_backend() -> None:
    """DeepSeek-V2-Lite: 27 layers x (512 + 64) x 2 bytes = 31,104 bytes a token."""
    text = (
        "(EngineCore pid=1) INFO 01-01 00:00:00 [core.py:1] Initializing a V1 LLM engine (v0.32.0)"
        " with config: model='deepseek-ai/DeepSeek-V2-Lite', max_seq_len=4096, device_config=cpu,"
        " tensor_parallel_size=1\n"
        "{}Available KV cache memory: 1.0 GiB\nCPU KV cache size: 34,512 tokens"
    )
    backend = "INFO 01-01 00:00:00 [cpu.py:1] Using {} backend.\n"
    name = "KV cache tokens, of the logged memory"
    # 2^30 // (16 x 31,104) = 2,157 blocks of 16 tokens; // (128 x 31,104) = 269 of 128.
    assert terms(of_text(text.format(backend.format("CPU_MLA"))))[name]["predicted"] == 2157 * 16
    assert terms(of_text(text.format(backend.format("AMX_MLA"))))[name]["predicted"] == 269 * 128
    data = of_text(text.format(""))
    assert name not in terms(data)


def test_a_refusal_is_what_is_predicted(tmp_path: Path) -> None:
    model = tiny(tmp_path, layers=64, length=131_072)
    data = report_startup(LOGS / "cpu-0.32.0-kv-cache.log", model=model).to_dict()
    assert data["outcome"] == "refused"
    found = terms(data)
    # 64 layers x 2 x 2 heads x 64 x 2 bytes = 32 KiB a token; one of 256 blocks stays free
    assert found["KV cache of one request"]["predicted"] == 131_072 * 32 * 1024
    longest = found["longest request, of the logged memory"]
    assert (longest["predicted"], longest["logged"]) == (255 * 128, 32_640)
    (refusal,) = data["refusals"]
    assert refusal["meaning"].endswith("3.00 GiB are missing")
    assert refusal["fixes"] == ["--max-model-len 32640, the longest that fits"]


def test_fixes_come_from_the_rules_of_check() -> None:
    text = (
        "INFO 01-01 00:00:00 [a.py:1] vLLM API server version 0.11.0\n"
        "INFO 01-01 00:00:00 [a.py:1] non-default args: "
        "{'model': 'meta-llama/Llama-3.1-8B-Instruct', 'max_model_len': 131072}\n"
        "ValueError: To serve at least one request with the models's max seq len (131072), (16.00 "
        "GiB KV cache is needed, which is larger than the available KV cache memory (2.84 GiB)."
    )
    (refusal,) = of_text(text, gpu="l4")["refusals"]
    assert "13.16 GiB are missing" in refusal["meaning"]
    assert any("--max-model-len" in fix and "[KV001]" in fix for fix in refusal["fixes"])
    # the length that vLLM measured stands alone, and each other way by itself
    longer = text + " Based on the available memory, the estimated maximum model length is 23248."
    (refusal,) = of_text(longer, gpu="l4")["refusals"]
    lengths = [fix for fix in refusal["fixes"] if fix.startswith("--max-model-len")]
    assert lengths == ["--max-model-len 23248, the longest that fits"]
    assert "--kv-cache-dtype fp8 --quantization fp8 [KV001]" in refusal["fixes"]
    (without,) = of_text(text)["refusals"]
    assert without["fixes"] == ["a smaller --max-model-len (--gpu NAME computes which)"]


@pytest.mark.parametrize(
    ("error", "fixes"),
    [
        # 2.6 of 121.63 GiB are 2.1 percent
        (
            (
                "Free memory on device cuda:0 (2.6/121.63 GiB) on startup is less than desired GPU "
                "memory utilization (0.08, 9.73 GiB)."
            ),
            ["--gpu-memory-utilization 0.02"],
        ),
        (
            "Total number of attention heads (32) must be divisible by tensor parallel size (3).",
            ["--tensor-parallel-size 2"],
        ),
        (
            "max_num_seqs (1024) exceeds available Mamba cache blocks (630)",
            ["--max-num-seqs 630"],
        ),
        (
            (
                "User-specified max_model_len (200000) is greater than the derived max_model_len "
                "(max_position_embeddings=131072.0 or model_max_length=None in model's config.json)."
            ),
            ["--max-model-len 131072"],
        ),
        (
            "World size (16) is larger than the number of available GPUs (8) in this node.",
            ["parallel sizes whose product is at most 8"],
        ),
        ("Model architectures ['X'] are not supported for now.", ["a vLLM that has the model"]),
        (
            (
                "Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your "
                "Tesla T4 GPU has compute capability 7.5."
            ),
            ["--dtype half"],
        ),
    ],
)
def test_what_a_refusal_means(error: str, fixes: list[str]) -> None:
    text = f"Initializing a V1 LLM engine (v0.11.0)\nValueError: {error}"
    (refusal,) = of_text(text)["refusals"]
    assert refusal["meaning"]
    for fix in fixes:
        assert any(said.startswith(fix) for said in refusal["fixes"]), refusal["fixes"]


def test_utilization_that_is_enough() -> None:
    """0.80 of 80 GiB, 4 GiB are missing: 0.85, and half a percent more."""
    text = (
        "vLLM API server version 0.11.0\n"
        "Free memory on device (79.0/80.0 GiB) on startup. Desired GPU memory utilization is "
        "(0.8, 64.0 GiB).\n"
        "ValueError: To serve at least one request with the models's max seq len (9000), (6.00 "
        "GiB KV cache is needed, which is larger than the available KV cache memory (2.00 GiB)."
    )
    (refusal,) = of_text(text)["refusals"]
    assert "--gpu-memory-utilization 0.86" in refusal["fixes"]


def test_out_of_memory_says_when() -> None:
    oom = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 896.00 MiB. GPU 0 has a "
        "total capacity of 23.58 GiB of which 410.00 MiB is free."
    )
    begun = "Initializing a V1 LLM engine (v0.11.0)\n"
    loaded = "Model loading took 14.99 GiB and 3.6 seconds\n"
    cached = "GPU KV cache size: 1,000 tokens\n"
    said = [
        of_text(before + oom)["refusals"][0]["meaning"].split(" ")[:2]
        for before in (begun, begun + loaded, begun + loaded + cached)
    ]
    assert said == [["loading", "the"], ["the", "profile"], ["with", "the"]]


def test_a_flag_that_is_not_known() -> None:
    log = LOGS / "cpu-0.32.0-flag.log"
    (refusal,) = report_startup(log, vllm_version="0.32.0").to_dict()["refusals"]
    assert refusal["fixes"] == ["--max-model-len instead of --max-model-length"]
    (refusal,) = report_startup(log).to_dict()["refusals"]
    assert "--vllm-version" in refusal["fixes"][0]


def test_a_version_between_releases() -> None:
    data = of_text("vLLM API server version 0.10.2.dev378+g4d7fe40fc\n")
    assert data["logged"]["version"] == "0.10.2.dev378+g4d7fe40fc"
    assert data["vllm_version"] == "0.10.2"
    given = report_startup(H200, model="qwen3-next-80b-a3b-instruct", vllm_version="0.20rc1")
    assert given.comparison.terms or given.comparison.why_not
    data = of_text("vLLM API server version 0.1.dev20073+g8e685d198\n")
    assert data["vllm_version"] is None
    assert {m["fact"] for m in data["missing"]} == {"vllm_version", "model", "gpu"}


def test_defaults_of_a_full_list_of_arguments_are_left_out() -> None:
    data = of_text(
        "vLLM API server version 0.8.5\nargs: Namespace(model='org/m', port=8000, api_key='k', "
        "tensor_parallel_size=1, max_model_len=4096, enforce_eager=False)"
    )
    assert data["engine_args"] == {"max_model_len": 4096}
    assert data["logged"]["arguments_not_shown"] == ["api_key"]


def test_a_gpu_of_another_size_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        report_startup(A100, gpu="l4")
    assert "79.25 GiB" in caught.value.what
    assert caught.value.where == "--gpu"
    with pytest.raises(UnknownFactError):
        report_startup(A100, gpu="no-such-gpu")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        report_startup(tmp_path / "no.log")
