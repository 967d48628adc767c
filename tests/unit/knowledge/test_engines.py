"""Engine facts: which version is used, and what it says."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from vllm_advisor.errors import InputError, UnknownFactError
from vllm_advisor.knowledge.engine_tables import known_versions
from vllm_advisor.knowledge.engines import (
    batch_defaults,
    engine_sources,
    load_engine,
    quantization_min_capability,
)
from vllm_advisor.types.accelerator import Accelerator
from vllm_advisor.types.engine import BatchDefaults
from vllm_advisor.types.source import Source, SourceKind
from vllm_advisor.units import GIB


def accelerator(name: str, gib: int, capability: tuple[int, int] = (9, 0)) -> Accelerator:
    return Accelerator(
        id="test",
        name=name,
        memory_total=gib * GIB,
        memory_total_source=Source(SourceKind.ASSUMED, "test"),
        compute_capability=capability,
    )


def test_known_versions_are_in_order_of_version() -> None:
    known = known_versions()
    assert known[:2] == ("0.8.0", "0.8.1")
    assert known.index("0.8.5.post1") == known.index("0.8.5") + 1
    assert known[-2:] == ("0.32.0", "0.33.0")


def test_no_version_is_the_newest_known() -> None:
    engine = load_engine(None)
    assert (engine.version, engine.known) == (known_versions()[-1], True)


@pytest.mark.parametrize("text", ["0.32.0", "v0.32.0", "0.32.0+cpu"])
def test_known_version(text: str) -> None:
    engine = load_engine(text)
    assert (engine.version, engine.version_used, engine.known) == ("0.32.0", "0.32.0", True)


@pytest.mark.parametrize(
    ("asked", "used"),
    [
        ("0.32.1", "0.32.0"),  # a patch: its minor version
        ("0.32.0rc1", "0.32.0"),  # before the release, the same code line
        ("0.33.4", "0.33.0"),
        ("9.0.0", known_versions()[-1]),
    ],
)
def test_unknown_version_says_whose_facts_are_used(asked: str, used: str) -> None:
    engine = load_engine(asked)
    assert (engine.version, engine.version_used, engine.known) == (asked, used, False)


def test_older_version_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownFactError, match=r"0\.7\.3 is older") as caught:
        load_engine("0.7.3")
    assert "0.8.0 to 0.33.0" in caught.value.fix


def test_text_that_is_no_version() -> None:
    with pytest.raises(InputError, match="'latest' is no vLLM version"):
        load_engine("latest")


def test_flags_of_both_versions() -> None:
    old, new = load_engine("0.32.0"), load_engine("0.33.0")
    # 316 and 320 flags, counted in the parsers (318 and 322 actions less help and model_tag)
    assert (len(old.flags), len(new.flags)) == (316, 320)
    assert old.flag("--disable-prefix-caching") is None
    flag = new.flag("--disable-prefix-caching")
    assert flag is not None
    assert flag.dest == "enable_prefix_caching"
    assert flag.negations == ("--no-enable-prefix-caching", "--disable-prefix-caching")
    assert "octave_k3v4" in new.flags["kv_cache_dtype"].choices
    assert "octave_k3v4" not in old.flags["kv_cache_dtype"].choices


def test_kinds() -> None:
    flags = load_engine("0.33.0").flags
    assert flags["max_model_len"].kind == "tokens_or_auto"
    assert flags["max_num_batched_tokens"].kind == "tokens"
    assert flags["gpu_memory_utilization"].kind == "float"
    assert flags["tensor_parallel_size"].spellings == ("--tensor-parallel-size", "-tp")
    assert flags["hf_overrides"].kind == "json_or_text"
    assert flags["speculative_config"].kind == "json"
    assert "cudagraph_mode" in flags["compilation_config"].choices
    assert flags["cudagraph_capture_sizes"].nargs == "+"
    assert flags["mamba_cache_mode"].deprecated


def test_hand_written_facts() -> None:
    engine = load_engine("0.33.0")
    assert (engine.gpu_memory_utilization, engine.block_size, engine.async_scheduling) == (
        0.92,
        16,
        True,
    )
    assert engine.flags["gpu_memory_utilization"].default == engine.gpu_memory_utilization
    source = engine_sources(engine).gpu_memory_utilization
    assert str(source).startswith("vllm:0.33.0:vllm/config/cache.py")


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        (accelerator("NVIDIA B200", 160, (10, 0)), (16384, 1024)),
        (accelerator("NVIDIA B200", 159, (10, 0)), (8192, 1024)),
        (accelerator("NVIDIA H100 80GB HBM3", 79), (8192, 1024)),
        (accelerator("NVIDIA H100 80GB HBM3", 70), (8192, 1024)),
        (accelerator("NVIDIA H100 80GB HBM3", 69), (2048, 256)),
        (accelerator("NVIDIA A100-SXM4-80GB", 79, (8, 0)), (2048, 256)),
        (accelerator("NVIDIA GB10", 119, (12, 1)), (2048, 256)),
        (accelerator("NVIDIA L40S", 44, (8, 9)), (2048, 256)),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_batch_defaults_by_device(device: Accelerator, expected: tuple[int, int]) -> None:
    tokens, seqs = expected
    defaults = batch_defaults(load_engine("0.33.0"), device)
    assert defaults == BatchDefaults(max_num_batched_tokens=tokens, max_num_seqs=seqs)


def test_gb10_counted_as_a_large_gpu_before_0_33() -> None:
    defaults = batch_defaults(load_engine("0.32.0"), accelerator("NVIDIA GB10", 119, (12, 1)))
    assert defaults.max_num_batched_tokens == 8192


def test_quantization_min_capability() -> None:
    engine = load_engine("0.33.0")
    table = quantization_min_capability(engine)
    assert (table["fp8"], table["mxfp4"], table["gptq"], table["fp_quant"]) == (75, 80, 60, 100)
    assert set(table) == set(engine.flags["quantization"].choices)


def test_an_unknown_version_has_the_facts_of_the_used_one() -> None:
    assert quantization_min_capability(load_engine("9.0.0"))["awq"] == 75


def test_loading_is_quick() -> None:
    def seconds() -> float:
        load_engine.cache_clear()
        start = time.perf_counter()
        load_engine("0.33.0")
        return time.perf_counter() - start

    assert min(seconds() for _ in range(5)) < 0.06


def test_every_flag_loads_in_every_version() -> None:
    kinds = {"bool", "int", "float", "str", "json", "tokens", "tokens_or_auto", "pairs"}
    kinds |= {"json_or_text", "json_or_level", "json_or_pairs"}
    for version in known_versions():
        for dest, flag in load_engine(version).flags.items():
            assert flag.dest == dest
            assert flag.kind in kinds
            assert flag.spellings
            assert flag.spellings[0].startswith("--")


def test_snapshot_tool_says_when_there_is_no_vllm() -> None:
    tool = Path(__file__).resolve().parents[3] / "tools" / "snapshot_engine.py"
    code = (
        "import runpy, sys; sys.modules['vllm'] = None; sys.argv = ['snapshot_engine.py'];"
        f"runpy.run_path({str(tool)!r}, run_name='__main__')"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert ran.stderr.startswith("there is no vLLM in this environment")
