"""What findings advise: the numbers are right, and each advice works by itself."""

from __future__ import annotations

import pytest
from checked_subject import subjects

from vllm_advisor.rules.registry import run_rules
from vllm_advisor.types.finding import Finding

GIB = 1 << 30
LLAMA = "vllm serve meta-llama/Llama-3.1-8B-Instruct"
QWEN = "vllm serve Qwen/Qwen3-8B"


def _one(command: str, gpu: str = "") -> Finding:
    (subject,) = subjects(f"# gpu: {gpu}\n{command}" if gpu else command)
    (finding,) = run_rules(subject)[0]
    return finding


def _advised(finding: Finding) -> list[str]:
    return finding.fix.split(", or ")


def test_kv001_says_what_is_needed_and_what_there_is() -> None:
    # 2 x 32 layers x 8 heads x 128 x 2 B = 128 KiB a token, 2 MiB a block of 16:
    # 131,072 tokens are 16 GiB; 8 GiB hold 4,096 blocks, less the spare one 4,095 x 16 = 65,520.
    finding = _one(f"{LLAMA} --kv-cache-memory-bytes 8G", "h100-sxm x 1")
    assert finding.rule == "KV001"
    assert finding.evidence == (
        ("max_model_len", 131072),
        ("needed_bytes", 16 * GIB),
        ("available_bytes", 8 * GIB),
        ("estimated_max_model_len", 65520),
    )
    # An FP8 cache or two ranks halve the request to 8 GiB, which leaves no spare block.
    assert _advised(finding) == ["--max-model-len 65520", "--tensor-parallel-size 4 on 4 GPUs"]


def test_kv001_names_an_fp8_cache_where_it_is_enough() -> None:
    finding = _one(f"{LLAMA} --kv-cache-memory-bytes 9G", "h100-sxm x 2")
    assert _advised(finding) == [
        "--max-model-len 73712",  # (9 GiB / 2 MiB - 1) x 16
        "--kv-cache-dtype fp8",
        "--tensor-parallel-size 2",
    ]


@pytest.mark.parametrize(
    ("command", "gpu", "known"),
    [
        (f"{LLAMA} --gpu-memory-utilization 0.4", "h100-sxm x 1", "--gpu-memory-utilization"),
        (LLAMA, "rtx-5090 x 2", "--kv-cache-dtype"),
        (f"{LLAMA} --max-model-len 28000", "l4 x 2", "--max-num-seqs"),
        # 16 GiB of weights and 16 GiB of cache on 22 GiB: neither alone is enough in 8 bits.
        (LLAMA, "l4 x 1", "--kv-cache-dtype fp8 --quantization fp8"),
        ("vllm serve meta-llama/Llama-3.3-70B-Instruct", "h100-sxm x 8", "--tensor-parallel-size"),
    ],
)
def test_every_advice_works_by_itself(command: str, gpu: str, known: str) -> None:
    finding = _one(command, gpu)
    assert finding.rule in ("KV001", "KV002")
    assert any(advice.startswith(known) for advice in _advised(finding)), finding.fix
    for advice in _advised(finding):
        flag, _, more = advice.removesuffix(" GPUs").partition(" on ")
        node = f"{gpu.partition(' x ')[0]} x {more}" if more else gpu
        (subject,) = subjects(f"# gpu: {node}\n{command} {flag}")
        assert run_rules(subject)[0] == (), advice


def test_kv002_without_a_remedy_says_how_much_is_missing() -> None:
    # Even 16 ranks hold 8.2 GiB of weights each, and no room for one request of 131,072 tokens.
    finding = _one("vllm serve meta-llama/Llama-3.3-70B-Instruct -tp 2", "t4 x 2")
    assert finding.rule == "KV002"
    assert "GiB are missing per GPU" in finding.message
    weights = dict(finding.evidence)["weights"]
    # (70.55e9 parameters x 2 B) / 2 ranks
    assert weights == pytest.approx(70.55e9, rel=0.001)


def test_ctx001_names_the_documented_stretch() -> None:
    finding = _one(f"{QWEN} --max-model-len 131072")
    lower, stretch = _advised(finding)
    assert lower == "--max-model-len 40960"
    (subject,) = subjects(f"{QWEN} --max-model-len 131072 {stretch}")
    assert run_rules(subject)[0] == ()


def test_ctx001_names_no_stretch_beyond_the_documented_one() -> None:
    # 4 x 32,768 is documented.
    assert _one(f"{QWEN} --max-model-len 131073").fix == "--max-model-len 40960"


def test_ctx001_says_where_an_override_belongs() -> None:
    overrides = """--hf-overrides '{"max_position_embeddings": 524288}'"""
    finding = _one(f"vllm serve Qwen/Qwen3-VL-8B-Instruct --max-model-len 524288 {overrides}")
    assert "outside of text_config the text model does not read it" in finding.message


@pytest.mark.parametrize("nested", [False, True])
def test_ctx002_gives_the_whole_override(nested: bool) -> None:
    model, original = ("Qwen/Qwen3-VL-8B-Instruct", 262144) if nested else ("Qwen/Qwen3-8B", 32768)
    rope = f'"rope_parameters": {{"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": {original}}}'
    given = f'{{"text_config": {{{rope}}}}}' if nested else f"{{{rope}}}"
    command = f"vllm serve {model} --max-model-len {4 * original}"
    finding = _one(f"{command} --hf-overrides '{given}'")
    assert finding.rule == "CTX002"
    assert f'"max_position_embeddings": {4 * original}' in finding.fix
    (subject,) = subjects(f"{command} {finding.fix}")
    assert run_rules(subject)[0] == ()


def test_ctx002_lowers_a_length_that_the_factor_does_not_reach() -> None:
    rope = '{"rope_parameters": {"rope_type": "yarn", "factor": 2, "original_max_position_embeddings": 32768}}'
    finding = _one(f"{QWEN} --max-model-len 131072 --hf-overrides '{rope}'")
    assert finding.fix.endswith(" and --max-model-len 65536")


def test_flg001_names_the_flag_without_its_value() -> None:
    assert _one(f"{QWEN} --scheduler-delay-factor=1").fix == "leave --scheduler-delay-factor out"


def test_flg001_names_versions_and_what_to_write() -> None:
    finding = _disable_on_032()
    assert finding.message == (
        "vLLM 0.32.0 has no flag --disable-prefix-caching; it came in 0.33.0; "
        "the inverse had one spelling"
    )
    assert finding.fix == (
        "write --no-enable-prefix-caching; or leave --disable-prefix-caching out"
    )


@pytest.mark.parametrize(
    ("version", "flag", "message", "fix"),
    [
        (
            "0.33.0",
            "--cuda-graph-sizes 8",
            "it was removed in 0.13.0; it is called --cudagraph-capture-sizes since 0.11.1",
            "write --cudagraph-capture-sizes N N ...",
        ),
        (
            "0.20.0",
            "--disable-log-requests",
            "it was removed in 0.17.0; it came back in 0.33.0; requests are not logged",
            "leave --disable-log-requests out",
        ),
        (
            "0.11.0",
            "--decode-context-parallel-sise 2",
            "vLLM 0.11.0 has no flag --decode-context-parallel-sise",
            "if one of these is meant, write it: --decode-context-parallel-size",
        ),
        (
            "0.10.1",
            "--decode-context-parallel-size 2",
            "it came in 0.10.2",
            "use vLLM 0.10.2 or newer; or if one of these is meant",
        ),
        (
            "0.8.5",
            "--hf-overrides.max_position_embeddings 9",
            "vLLM 0.8.5 takes no single keys of --hf-overrides",
            "give --hf-overrides one JSON object",
        ),
    ],
)
def test_flg001_says_what_became_of_a_flag(version: str, flag: str, message: str, fix: str) -> None:
    (subject,) = subjects(f"# vllm: {version}\n{QWEN} {flag}")
    (finding,) = [f for f in run_rules(subject)[0] if f.rule == "FLG001"]
    assert message in finding.message
    assert finding.fix.startswith(fix)


def _disable_on_032() -> Finding:
    (subject,) = subjects("# vllm: 0.32.0\nvllm serve Qwen/Qwen3-8B --disable-prefix-caching")
    (finding,) = run_rules(subject)[0]
    return finding


@pytest.mark.parametrize(
    ("flags", "fix"),
    [
        ("--gpu-memory-utilization 92", "--gpu-memory-utilization 0.92"),
        ("--gpu-memory-utilization 1.2", "--gpu-memory-utilization 0.92"),
        ("--gpu-memory-utilization 0", "--gpu-memory-utilization 0.92"),
        ("--pipeline-parallel-size 0", "--pipeline-parallel-size 1"),
    ],
)
def test_flg003_gives_a_number(flags: str, fix: str) -> None:
    assert _one(f"{QWEN} {flags}").fix == fix


@pytest.mark.parametrize(
    ("flags", "fix"),
    [
        ("--port", "write --port followed by a number, such as --port 8000, or leave it out"),
        ("stray", "leave the word out, or write the flag it belongs to before it"),
        ("--served-model-name", "write --served-model-name followed by its value, or leave it out"),
        ("--hf-overrides", "give --hf-overrides one JSON object in single quotes, or leave it out"),
    ],
)
def test_flg002_has_a_fix_where_the_reader_has_none(flags: str, fix: str) -> None:
    assert _one(f"{QWEN} {flags}").fix == fix


@pytest.mark.parametrize(
    ("command", "gpu", "fix"),
    [
        # Divisors of 40 heads that also divide the 8 KV heads, or are divided by them.
        ("vllm serve Qwen/Qwen2.5-14B-Instruct -tp 7", "", "--tensor-parallel-size 1 or 2 or 4"),
        (f"{LLAMA} -tp 3", "l4 x 8", "--tensor-parallel-size 1 or 2 or 4 or 8"),
        # Sixteen ranks hold each of the 8 KV heads twice.
        (f"{LLAMA} -tp 16 -dcp 4", "h100-sxm x 16", "--decode-context-parallel-size 1 or 2"),
    ],
)
def test_par001_names_the_sizes_that_work(command: str, gpu: str, fix: str) -> None:
    assert _one(command, gpu).fix == fix


@pytest.mark.parametrize(
    ("flags", "gpu", "fix"),
    [
        ("-tp 4", "h100-sxm x 2", "--tensor-parallel-size 2, or 4 GPUs"),
        # Seven ranks would not divide 32 heads, nor would six or five.
        ("-tp 8", "h100-sxm x 7", "--tensor-parallel-size 4, or 8 GPUs"),
        ("-tp 2 -dp 4", "h100-sxm x 4", "--data-parallel-size 2, or 8 GPUs"),
        (
            "-tp 2 -dp 8 --data-parallel-size-local 4",
            "l40s x 4",
            "--data-parallel-size-local 2, or 8 GPUs",
        ),
    ],
)
def test_par002_counts_ranks(flags: str, gpu: str, fix: str) -> None:
    assert _one(f"{LLAMA} --max-model-len 8192 {flags}", gpu).fix == fix


def test_sch001_gives_both_numbers() -> None:
    finding = _one(f"{QWEN} --max-num-seqs 300 --max-num-batched-tokens 200")
    assert finding.fix == "--max-num-batched-tokens 300 or more, or --max-num-seqs 200"
