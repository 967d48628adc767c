"""What each vLLM release has, held against lines of its source that were read by hand."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from vllm_advisor.knowledge import engine_history, engine_tables
from vllm_advisor.knowledge.engine_history import (
    environment_history,
    flag_history,
    knows_variable,
    quantization_facts,
    replacement,
    warns_of_variables,
)
from vllm_advisor.knowledge.engine_tables import known_versions
from vllm_advisor.knowledge.engines import (
    batch_defaults,
    engine_assumptions,
    load_engine,
    quantization_min_capability,
)
from vllm_advisor.types.accelerator import Accelerator
from vllm_advisor.types.engine import Flag
from vllm_advisor.types.source import Source, SourceKind
from vllm_advisor.units import GIB

# An option string, the last release without it or with it, and the next one that differs. The line
# is where the string stands in the release that has it; in the other one it stands nowhere.
CHANGES = [
    # gone: the last release that has it, the first that has not
    ("--swap-space", "0.17.1", "0.18.0"),  # arg_utils.py:951
    ("--task", "0.12.0", "0.13.0"),  # arg_utils.py:619
    ("--guided-decoding-backend", "0.11.2", "0.12.0"),  # arg_utils.py:730
    ("--num-scheduler-steps", "0.10.0", "0.10.1"),  # arg_utils.py:803
    ("--enable-reasoning", "0.9.2", "0.10.0"),  # arg_utils.py:627
    ("--rope-scaling", "0.11.0", "0.11.1"),  # arg_utils.py:541
    ("--cuda-graph-sizes", "0.12.0", "0.13.0"),  # arg_utils.py:1098
    ("--speculative-model", "0.8.2", "0.8.3"),  # arg_utils.py:789
    ("--disable-log-requests", "0.16.0", "0.17.0"),  # arg_utils.py:2088
    ("--max-seq-len-to-capture", "0.10.2", "0.11.0"),  # arg_utils.py:532
    ("--override-pooler-config", "0.11.2", "0.12.0"),  # arg_utils.py:666
    ("--disable-frontend-multiprocessing", "0.18.1", "0.19.0"),  # openai/cli_args.py:108
    ("--device", "0.9.2", "0.10.0"),  # arg_utils.py:818
    ("--calculate-kv-scales", "0.27.1", "0.28.0"),  # arg_utils.py:1218
    ("--max-num-partial-prefills", "0.26.0", "0.27.0"),  # arg_utils.py:1444
]
ARRIVALS = [
    # come: the last release that has not got it, the first that has
    ("--runner", "0.10.0", "0.10.1"),  # arg_utils.py:473
    ("--structured-outputs-config", "0.10.2", "0.11.0"),  # arg_utils.py:938
    ("--cuda-graph-sizes", "0.8.5.post1", "0.9.0"),  # arg_utils.py:797
    ("--speculative-config", "0.8.1", "0.8.2"),  # arg_utils.py:783
    ("--attention-backend", "0.12.0", "0.13.0"),  # arg_utils.py:727
    ("--kv-cache-memory-bytes", "0.10.1.1", "0.10.2"),  # arg_utils.py:744
    ("--data-parallel-size", "0.8.2", "0.8.3"),  # arg_utils.py:429
    # argparse_utils.py:179 registers EnableDisableAction
    ("--disable-log-requests", "0.32.0", "0.33.0"),
    ("--disable-prefix-caching", "0.32.0", "0.33.0"),
]


@pytest.mark.parametrize(("spelling", "has_it", "has_not"), CHANGES)
def test_flags_that_went(spelling: str, has_it: str, has_not: str) -> None:
    assert load_engine(has_it).flag(spelling) is not None
    assert load_engine(has_not).flag(spelling) is None
    history = flag_history(spelling)
    assert (has_it, has_not) in [
        (last, after) for (_, last), after in zip(history.spans, history.after, strict=True)
    ]


@pytest.mark.parametrize(("spelling", "has_not", "has_it"), ARRIVALS)
def test_flags_that_came(spelling: str, has_not: str, has_it: str) -> None:
    assert load_engine(has_not).flag(spelling) is None
    assert load_engine(has_it).flag(spelling) is not None
    assert has_it in [first for first, _ in flag_history(spelling).spans]


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        # arg_utils.py:784: StoreBoolean with nargs="?"
        ("0.8.4", Flag(dest="enable_chunked_prefill", spellings=("--enable-chunked-prefill",), kind="bool", nargs="?")),
        # arg_utils.py:852: of SchedulerConfig by get_kwargs, so BooleanOptionalAction
        ("0.8.5", Flag(dest="enable_chunked_prefill", spellings=("--enable-chunked-prefill",), negations=("--no-enable-chunked-prefill",), kind="bool")),
        ("0.8.3", Flag(dest="max_model_len", spellings=("--max-model-len",), kind="int")),  # arg_utils.py:369
        ("0.8.4", Flag(dest="max_model_len", spellings=("--max-model-len",), kind="tokens")),  # arg_utils.py:393
        ("0.13.0", Flag(dest="max_model_len", spellings=("--max-model-len",), kind="tokens")),
        ("0.14.0", Flag(dest="max_model_len", spellings=("--max-model-len",), kind="tokens_or_auto")),  # arg_utils.py:301
        ("0.9.0", Flag(dest="api_key", spellings=("--api-key",))),  # openai/cli_args.py:113
        ("0.10.1", Flag(dest="api_key", spellings=("--api-key",), nargs="+")),  # openai/cli_args.py:90
        # config/cache.py:25
        ("0.10.2", Flag(dest="kv_cache_dtype", spellings=("--kv-cache-dtype",), choices=("auto", "fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc"), default="auto")),
        ("0.11.0", Flag(dest="kv_cache_dtype", spellings=("--kv-cache-dtype",), choices=("auto", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc"), default="auto")),
        # config/cache.py:41 and :66
        ("0.19.1", Flag(dest="gpu_memory_utilization", spellings=("--gpu-memory-utilization",), kind="float", default=0.9)),
        ("0.20.0", Flag(dest="gpu_memory_utilization", spellings=("--gpu-memory-utilization",), kind="float", default=0.92)),
        ("0.9.2", Flag(dest="model", spellings=("--model",), default="facebook/opt-125m")),  # config.py:233
        ("0.10.0", Flag(dest="model", spellings=("--model",), default="Qwen/Qwen3-0.6B")),  # config.py:231
        ("0.11.0", Flag(dest="api_server_count", spellings=("--api-server-count", "-asc"), kind="int", default=1)),  # openai/cli_args.py:252
        ("0.8.4", Flag(dest="limit_mm_per_prompt", spellings=("--limit-mm-per-prompt",), kind="pairs")),  # arg_utils.py:670
    ],
    ids=lambda value: getattr(value, "dest", value),
)  # fmt: skip
def test_flags_as_the_source_has_them(version: str, expected: Flag) -> None:
    assert load_engine(version).flags[expected.dest] == expected


@pytest.mark.parametrize(
    ("name", "last", "after"),
    [
        ("VLLM_USE_V1", "0.11.0", "0.11.1"),  # envs.py:900
        ("VLLM_USE_TRITON_FLASH_ATTN", "0.11.0", "0.11.1"),  # envs.py:484
        ("VLLM_ATTENTION_BACKEND", "0.14.1", "0.15.0"),  # envs.py:687
        ("VLLM_FLASH_ATTN_VERSION", "0.14.1", "0.15.0"),  # envs.py:577
    ],
)
def test_variables_that_went(name: str, last: str, after: str) -> None:
    history = environment_history(name)
    assert (history.since, history.until, history.after) == ("0.8.0", last, (after,))
    assert knows_variable(load_engine(last), name)
    assert not knows_variable(load_engine(after), name)


def test_variables_that_stayed_or_never_were() -> None:
    kept = environment_history("VLLM_WORKER_MULTIPROC_METHOD")
    assert (kept.since, kept.until) == ("0.8.0", None)
    never = environment_history("VLLM_NO_SUCH_VARIABLE")
    assert (never.since, never.until, never.spans) == (None, None, ())
    # envs.py#validate_environ and the flag came together, in 0.17.0
    assert [warns_of_variables(load_engine(v)) for v in ("0.16.0", "0.17.0")] == [False, True]


def test_defaults_of_variables() -> None:
    table, version = engine_tables.recorded_table("environment", "0.11.0")
    assert version == "0.11.0"
    assert table["VLLM_USE_V1"] == {"default": True}  # envs.py:901
    assert table["VLLM_CACHE_ROOT"] == {}  # a folder of the user: only the machine tells


@pytest.mark.parametrize(
    ("method", "version", "capability"),
    [
        ("fp8", "0.13.0", 80),  # fp8.py#Fp8Config.get_min_capability
        ("fp8", "0.14.0", 75),
        ("awq_marlin", "0.13.0", 80),  # awq_marlin.py:123
        ("awq", "0.8.0", 75),
        ("gptq", "0.33.0", 60),
    ],
)
def test_capability_of_quantization(method: str, version: str, capability: int) -> None:
    assert quantization_facts(version).methods[method].min_capability == capability
    assert quantization_min_capability(load_engine(version))[method] == capability


def test_methods_that_became_plugins() -> None:
    # quantization/__init__.py:21 of 0.23.0 has gguf, :28 of 0.27.1 has bitsandbytes
    assert quantization_facts("0.23.0").plugins == {}
    assert quantization_facts("0.24.0").plugins == {"gguf": "vllm-gguf-plugin"}
    assert quantization_facts("0.28.0").plugins == {
        "gguf": "vllm-gguf-plugin",
        "bitsandbytes": None,
    }
    # its class asserts that it is never asked
    assert quantization_facts("0.10.0").methods["inc"].min_capability is None


@pytest.mark.parametrize(
    ("spelling", "version", "text"),
    [
        ("--guided-decoding-backend", "0.33.0", "--structured-outputs-config.backend NAME"),
        ("--structured-outputs-config", "0.10.2", "--guided-decoding-backend NAME"),
        ("--attention-backend", "0.12.0", "VLLM_ATTENTION_BACKEND=NAME in the environment"),
        ("--disable-chunked-prefill", "0.8.4", "--enable-chunked-prefill false"),
        ("--disable-chunked-prefill", "0.20.0", "--no-enable-chunked-prefill"),
        ("--swap-space", "0.10.0", None),  # --kv-offloading-size came later
        # the key went again after 0.11
        (
            "--guided-decoding-disable-fallback",
            "0.11.0",
            "--structured-outputs-config.disable_fallback true",
        ),
        ("--guided-decoding-disable-fallback", "0.33.0", None),
        ("--no-such-flag", "0.33.0", None),
    ],
)
def test_what_to_write_instead(spelling: str, version: str, text: str | None) -> None:
    assert replacement(flag_history(spelling), load_engine(version)) == text


def test_advice_is_about_names_that_were_there() -> None:
    for entries, history in (
        (engine_history._advice().flags, flag_history),
        (engine_history._advice().variables, environment_history),
    ):
        names = [name for entry in entries for name in entry.names]
        assert len(names) == len(set(names))
        for entry in entries:
            Source.parse(entry.source)
            for name in entry.names:
                assert history(name).spans, name
            for option in entry.write:
                wanted = (option.needs or "").partition(".")[0]
                assert not wanted or flag_history(wanted).spans, wanted
                wanted = option.needs_variable or ""
                assert not wanted or environment_history(wanted).spans, wanted


@pytest.mark.parametrize(
    ("asked", "used"),
    [
        ("0.8.5.post1", "0.8.5.post1"),
        ("0.10.1.1", "0.10.1.1"),
        ("0.19.2", "0.19.1"),
        ("0.10.3", "0.10.2"),
        ("0.8.6", "0.8.5.post1"),
        ("0.11.0rc2", "0.11.0"),
        ("0.34.0", known_versions()[-1]),
    ],
)
def test_releases_that_are_not_recorded(asked: str, used: str) -> None:
    engine = load_engine(asked)
    assert (engine.version_used, engine.known) == (used, asked == used)
    says = [a.id for a in engine_assumptions(engine)]
    assert ("vllm-version-not-known" in says) is (asked != used)
    assert ("vllm-version-not-compared" in says) is (Version(used) < Version("0.32.0"))


@pytest.mark.parametrize(
    ("version", "name", "gib", "expected"),
    [
        # EngineArgs._set_default_args_v1 and get_batch_defaults of each release
        ("0.8.3", "NVIDIA H100 80GB HBM3", 79, (8192, 1024)),
        ("0.8.3", "NVIDIA A100-SXM4-80GB", 79, (2048, 1024)),
        ("0.8.4", "NVIDIA A100-SXM4-80GB", 79, (2048, 256)),
        ("0.8.4", "NVIDIA B200", 178, (2048, 256)),  # by name: no H100, no H200
        ("0.8.5", "NVIDIA A100-SXM4-80GB", 79, (8192, 1024)),
        ("0.9.0", "NVIDIA A100-SXM4-80GB", 79, (2048, 256)),
        ("0.27.1", "NVIDIA B200", 178, (8192, 1024)),
        ("0.28.0", "NVIDIA B200", 178, (16384, 1024)),
    ],
)
def test_batch_defaults_by_release(
    version: str, name: str, gib: int, expected: tuple[int, int]
) -> None:
    accelerator = Accelerator(
        id="test",
        name=name,
        memory_total=gib * GIB,
        memory_total_source=Source(SourceKind.ASSUMED, "test"),
        compute_capability=(9, 0),
    )
    found = batch_defaults(load_engine(version), accelerator)
    assert (found.max_num_batched_tokens, found.max_num_seqs) == expected


def test_async_scheduling_became_the_default() -> None:
    # config/scheduler.py of 0.13.0 says False, of 0.14.0 None, which config/vllm.py turns on
    assert [load_engine(v).async_scheduling for v in ("0.13.0", "0.14.0")] == [False, True]


def test_facts_of_newer_versions_are_named() -> None:
    assert "synchronous_drafting" in load_engine("0.31.0").carried
    assert load_engine("0.32.0").carried == ()


@pytest.mark.parametrize("version", known_versions())
def test_option_strings_of_a_release_are_unique(version: str) -> None:
    flags = load_engine(version).flags
    spellings = [s for f in flags.values() for s in (*f.spellings, *f.negations)]
    assert len(spellings) == len(set(spellings))
    assert len(flags) >= 135  # 0.8.3 has the fewest
    assert all(s.startswith("-") for s in spellings)


@given(
    st.sampled_from(sorted({s for names in engine_history._spellings().values() for s in names}))
)
def test_spans_are_in_order_and_apart(spelling: str) -> None:
    history = flag_history(spelling)
    ends = [Version(v) for span in history.spans for v in span]
    assert ends == sorted(ends)
    for (_, last), after in zip(history.spans, history.after, strict=True):
        assert (after is None) == (last == known_versions()[-1])
        assert after is None or Version(last) < Version(after)
    for version in known_versions():
        has_it = any(
            Version(first) <= Version(version) <= Version(last) for first, last in history.spans
        )
        assert has_it == (load_engine(version).flag(spelling) is not None)


def test_any_release_loads_quickly() -> None:
    def seconds(version: str) -> float:
        load_engine.cache_clear()
        engine_tables._history.cache_clear()
        start = time.perf_counter()
        load_engine(version)
        return time.perf_counter() - start

    load_engine("0.8.0")  # the hand-written facts are read once
    assert max(min(seconds(v) for _ in range(5)) for v in ("0.8.0", "0.10.1", "0.31.0")) < 0.03
