"""Start-up logs as facts: real ones, short lines of older versions, prefixes, several starts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from vllm_advisor.errors import InputError
from vllm_advisor.parse.startup_arguments import read_arguments
from vllm_advisor.parse.startup_lines import FACT_LINES
from vllm_advisor.parse.startup_log import read_startup_log
from vllm_advisor.parse.startup_messages import clean_line
from vllm_advisor.parse.startup_refusals import REFUSALS
from vllm_advisor.parse.startup_words import MARKS, WORDS, may_say
from vllm_advisor.types.startup import StartupLog
from vllm_advisor.units import GIB

LOGS = Path(__file__).parents[2] / "data" / "startup_logs"
NAMES = sorted(path.name for path in LOGS.glob("*.log"))
H200 = "h200-0.10.2-tp2.log"


@pytest.mark.parametrize(
    "pattern",
    [form.pattern for form in FACT_LINES] + [pattern for _, pattern in REFUSALS],
    ids=lambda pattern: pattern.pattern[:40],
)
def test_every_form_has_a_word_or_a_mark_that_lets_its_line_pass(pattern: re.Pattern[str]) -> None:
    text = pattern.pattern
    between = re.split(r"[^A-Za-z_:]", text)  # words of the form, whatever stands around them
    assert WORDS & set(between) or any(mark.strip() in text for mark in MARKS)


def test_lines_of_requests_are_passed_over() -> None:
    assert not may_say(
        '(APIServer pid=1) INFO:     10.0.0.1:1 - "POST /v1/completions HTTP/1.1" 200'
    )
    stats = "Avg prompt throughput: 12.3 tokens/s, Running: 12 reqs, GPU KV cache usage: 3.2%"
    assert not may_say(f"INFO 10-23 15:10:10 [loggers.py:123] Engine 000: {stats}")
    assert may_say("\x1b[33mWARNING\x1b[0m 10-23 15:10:41 [a.py:1] something")


def read(name: str) -> StartupLog:
    return read_startup_log((LOGS / name).read_text("utf-8").split("\n"), name)


def read_text(text: str) -> StartupLog:
    return read_startup_log(text.split("\n"), "-")


def value(log: StartupLog, fact: str) -> object:
    found = log.first(fact)
    return found.value if found else None


def test_a_real_start_on_a_cpu() -> None:
    log = read("cpu-0.32.0-started.log")
    assert log.started
    assert log.refusals == ()
    assert value(log, "version") == "0.32.0"
    assert log.arguments["max_model_len"] == 4096
    assert (log.arguments_from, log.arguments_line) == ("non-default args", 8)
    # 1 GiB over 4 layers x 2 (K and V) x 2 heads x 64 x 2 bytes of a token
    assert value(log, "kv_cache") == GIB
    assert value(log, "kv_tokens") == GIB // (4 * 2 * 2 * 64 * 2)
    assert value(log, "max_concurrency") == 524_288 / 4096
    assert value(log, "engine_seconds") == 62.92
    assert any("libtcmalloc is not found" in w.text for w in log.warnings)
    # the warning whose traceback has 14 lines is one
    (warmup,) = [w for w in log.warnings if w.text == "Chat template warmup failed"]
    assert not [w for w in log.warnings if warmup.line < w.line < warmup.line + 14]


def test_two_workers_of_0_10() -> None:
    log = read(H200)
    weights = log.largest("weights")
    assert weights is not None
    assert (weights.value, weights.line) == (round(74.2812 * GIB), 13)
    assert [f.process for f in log.all("weights")] == ["Worker_TP1", "Worker_TP0"]
    assert value(log, "kv_cache_in_use") == 47_878_721_024
    assert value(log, "total") == round(139.81 * GIB)
    assert value(log, "activations") == round(5.58 * GIB)
    assert value(log, "non_torch") == round(1.38 * GIB)
    assert value(log, "cuda_graphs_captured") == round(2.37 * GIB)
    assert value(log, "gpu_name") == "NVIDIA_H200"
    assert value(log, "attention_backend") == "Flash Attention"
    assert [(w.line, w.count) for w in log.warnings] == [(8, 2)]


def test_consumed_memory_of_0_29_and_later() -> None:
    log = read("a100-0.31.0.log")
    assert value(log, "consumed") == round(15.26 * GIB)
    assert value(log, "activations_and_graphs") == round(1.44 * GIB)
    assert value(log, "activations") is None
    assert value(log, "kv_tokens") == 460_496
    assert log.arguments_from == "config"
    assert log.arguments["model"] == "meta-llama/Llama-3.1-8B-Instruct"
    assert log.arguments["enforce_eager"] is False


def test_graphs_of_0_26() -> None:
    log = read("gb200-0.26.0-tp4.log")
    assert value(log, "cuda_graphs_estimate") == round(4.99 * GIB)
    assert value(log, "cuda_graphs_captured") == round(4.13 * GIB)


def test_the_v0_engine() -> None:
    log = read("rtx-3090-0.8-v0.log")
    assert value(log, "requested") == round(23.35 * GIB)
    assert value(log, "gpu_memory_utilization") == 0.99
    assert value(log, "kv_cache") == round(1.57 * GIB)


def test_lines_of_0_8() -> None:
    log = read("l40s-0.8.log")
    assert value(log, "weights") == round(14.9889 * GIB)
    assert value(log, "kv_tokens") == 158_656
    assert value(log, "concurrency_tokens") == 32_768


@pytest.mark.parametrize(
    ("name", "kind", "figures"),
    [
        (
            "cpu-0.32.0-kv-cache.log",
            "kv-cache-below-one-request",
            {"length": "131072", "needed": "4.0", "available": "1.0", "longest": "32640"},
        ),
        ("cpu-0.32.0-flag.log", "flag-unknown", {"words": "--max-model-length 4096"}),
        ("cpu-0.32.0-context.log", "context-above-model", {"length": "16384", "limit": "8192"}),
        ("cpu-0.32.0-architecture.log", "architecture-unknown", {"name": "nosuch"}),
    ],
)
def test_real_refusals(name: str, kind: str, figures: dict[str, str]) -> None:
    log = read(name)
    assert [r.kind for r in log.refusals] == [kind]
    assert log.refusals[0].figures == figures
    assert not log.started


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        # vllm-project/vllm, 0.8: "models's", and GB for what is divided by 2**30
        (
            (
                "ValueError: To serve at least one request with the models's max seq len (131072), "
                "(14.00 GB KV cache is needed, which is larger than the available KV cache memory "
                "(12.54 GB). Try increasing `gpu_memory_utilization`"
            ),
            "kv-cache-below-one-request",
        ),
        (
            (
                "ValueError: The model's max seq len (32768) is larger than the maximum number of "
                "tokens that can be stored in KV cache (4000)."
            ),
            "kv-cache-below-one-request",
        ),
        ("ValueError: No available memory for the cache blocks.", "no-memory-for-kv-cache"),
        (
            (
                "ValueError: Free memory on device cuda:0 (2.6/121.63 GiB) on startup is less than "
                "desired GPU memory utilization (0.08, 9.73 GiB)."
            ),
            "memory-not-free",
        ),
        (
            (
                "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 896.00 MiB. GPU 0 has "
                "a total capacity of 23.58 GiB of which 410.00 MiB is free."
            ),
            "out-of-memory",
        ),
        (
            (
                "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least "
                "8.0. Your Tesla T4 GPU has compute capability 7.5."
            ),
            "compute-capability",
        ),
        (
            (
                "ValueError: The quantization method gpt_oss_mxfp4 is not supported for the current "
                "GPU. Minimum capability: 80. Current capability: 75."
            ),
            "compute-capability",
        ),
        (
            (
                "ValueError: Total number of attention heads (32) must be divisible by tensor parallel "
                "size (3)."
            ),
            "heads-not-divisible",
        ),
        (
            "ValueError: Model architectures ['NewForCausalLM'] are not supported for now.",
            "architecture-unknown",
        ),
        ("RuntimeError: something nobody has seen", "other"),
    ],
)
def test_forms_of_refusals(text: str, kind: str) -> None:
    (refusal,) = read_text(f"Initializing a V1 LLM engine (v0.11.0)\n{text}").refusals
    assert refusal.kind == kind
    assert refusal.line == 2


def test_wrappers_of_an_error_say_nothing() -> None:
    log = read_text(
        "Initializing a V1 LLM engine (v0.11.0)\n"
        "ValueError: the cause\n"
        "RuntimeError: Engine core initialization failed. See root cause above."
    )
    assert [r.text for r in log.refusals] == ["ValueError: the cause"]


def test_a_warning_is_no_refusal() -> None:
    text = "WARNING 10-23 15:10:41 [a.py:1] No available memory for the cache blocks"
    log = read_text(f"Initializing a V1 LLM engine (v0.11.0)\n{text}")
    assert log.refusals == ()


@pytest.mark.parametrize(
    "wrap",
    [
        "{}",
        "2026-09-30T12:00:00.123456789Z {}",
        "2026-09-30T12:00:00.1+02:00 stderr F {}",
        "[pod/vllm-0/server] {}",
        "[pod/vllm-0/server] 2026-09-30T12:00:00Z {}",
        "vllm-1  | {}",
        "Oct 06 17:00:10 host vllm[123]: {}",
        "\x1b[1;36m{}\x1b[0m",
        "{}\r",
    ],
)
def test_what_stands_before_a_line_does_not_matter(wrap: str) -> None:
    lines = (LOGS / H200).read_text("utf-8").splitlines()
    log = read_startup_log([wrap.format(line) for line in lines], "-")
    plain = read(H200)
    assert log.facts == plain.facts
    assert log.arguments == plain.arguments
    assert log.warnings == plain.warnings


def test_json_lines_of_docker() -> None:
    lines = (LOGS / H200).read_text("utf-8").splitlines()
    wrapped = [json.dumps({"log": line + "\n", "stream": "stderr"}) for line in lines]
    assert read_startup_log(wrapped, "-").facts == read(H200).facts


def test_colours_inside_of_a_prefix() -> None:
    line = clean_line("\x1b[0;36m(EngineCore_0 pid=7)\x1b[0;0m INFO 08-19 14:58:40 [a.py:2] text")
    assert (line.process, line.level, line.text) == ("EngineCore_0", "INFO", "text")


def test_two_processes_on_one_line() -> None:
    one = "(Worker_TP0 pid=1) INFO 01-01 00:00:00 [a.py:1] Available KV cache memory: {} GiB"
    log = read_text(one.format("2.00") + one.format("1.50"))
    smallest = log.smallest("kv_cache")
    assert smallest is not None
    assert smallest.value == round(1.5 * GIB)


def test_of_several_starts_the_last() -> None:
    first = (LOGS / "cpu-0.32.0-kv-cache.log").read_text("utf-8")
    second = (LOGS / "cpu-0.32.0-started.log").read_text("utf-8")
    log = read_text(first + second)
    assert (log.starts, log.started, log.refusals) == (2, True, ())
    assert log.first_line == first.count("\n") + 4


def test_every_argument_of_0_8_and_none_of_its_secrets() -> None:
    found = read_arguments(
        "args: Namespace(subparser='serve', model_tag='org/m', api_key='secret', port=8000, "
        "max_model_len=32768, dispatch_function=<function ServeSubcommand.cmd at 0x7f00>)"
    )
    assert found is not None
    assert found.kind == "args"
    assert found.values["max_model_len"] == 32_768
    assert found.unread == ("api_key", "dispatch_function")
    assert "secret" not in repr(found)


def test_objects_among_the_arguments() -> None:
    found = read_arguments(
        "non-default args: {'model': 'org/m', 'kv_transfer_config': KVTransferConfig("
        "kv_connector='LMCacheConnectorV1', kv_role='kv_both', kv_rank=None), "
        "'compilation_config': {'mode': <CompilationMode.NONE: 0>}, 'limits': {'image': 2}}"
    )
    assert found is not None
    connector = {"kv_connector": "LMCacheConnectorV1", "kv_role": "kv_both"}
    assert found.values["kv_transfer_config"] == connector
    assert found.values["limits"] == {"image": 2}
    assert found.unread == ("compilation_config",)


@pytest.mark.parametrize(
    "text",
    ["non-default args: {'model': 'org", "non-default args: {" + "[" * 5000, "args: Namespace("],
)
def test_arguments_that_are_cut_off_are_none(text: str) -> None:
    assert read_arguments(text) is None


def test_what_is_no_log_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        read_text("hello\nworld")
    assert (caught.value.where, caught.value.exit_code) == ("-", 2)
    assert "docker logs" in caught.value.fix


@pytest.mark.parametrize("name", NAMES)
def test_each_hint_is_a_part_of_its_line(name: str) -> None:
    """A hint that is no part of its line would hide the fact."""
    for raw in (LOGS / name).read_text("utf-8").splitlines():
        text = clean_line(raw).text
        for form in FACT_LINES:
            if form.pattern.search(text):
                assert form.hint in text
