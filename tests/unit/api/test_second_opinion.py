"""aiconfigurator beside our own estimate: a stand-in of its package answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from forked_cli import run_cli

from vllm_advisor.api.estimating import EstimateReport, estimate
from vllm_advisor.api.second_opinion import ask, installed_version
from vllm_advisor.errors import InputError
from vllm_advisor.types.second_opinion import Question

PACKAGE = "aiconfigurator_core"
TOOL = "aiconfigurator"
LLAMA = "llama-3.1-8b-instruct"
# What of aiconfigurator_core 0.12 is asked. Its answer is made of what it is asked: TTFT the size
# of the batch, TPOT that of the prompt in seconds, throughput the KV cache's bits.
STAND_IN = {
    "__init__": "asked = []",
    "sdk/__init__": "",
    "sdk/config": """
class RuntimeConfig:
    def __init__(self, *, isl, osl, prefix, batch_size):
        self.isl, self.osl, self.prefix, self.batch_size = isl, osl, prefix, batch_size
""",
    "sdk/config_builders": """
def build_model_config(**given):
    return given
""",
    "sdk/models/__init__": """
import json, pathlib
def get_model(path, config, backend):
    read = json.loads(pathlib.Path(path, "config.json").read_text())
    if read["architectures"] == ["Gemma3ForConditionalGeneration"]:
        raise ValueError("The architecture is not supported. Supported: many")
    return {"config": config, "read": read, "backend": backend}
""",
    "sdk/models/helpers": """
def resolve_context_fmha_by_data(config, path, database, backend, *, is_context_role):
    assert is_context_role
def resolve_nvfp4_for_system(config, system, path, *, backend_name):
    config["system"] = system
""",
    "sdk/perf_database": """
def get_latest_database_version(*, system, backend):
    return "0.24.0"
def get_database_view(system, backend, version, *, allow_missing_data, database_mode):
    assert not allow_missing_data
    return database_mode
""",
    "sdk/backends/__init__": "",
    "sdk/backends/factory": """
import aiconfigurator_core
class Summary:
    def __init__(self, load, model):
        self.load, self.model = load, model
    def check_oom(self):
        return self.load.batch_size == 500
    def check_kv_cache_oom(self):
        return self.load.batch_size == 501
    def get_result_dict(self):
        bits = {"fp8": 8.0, "bfloat16": 16.0}[self.model["config"]["kvcache_quant_mode"]]
        return {"ttft": self.load.batch_size, "tpot": self.load.isl / 1000, "tokens/s": bits}
class Backend:
    def run_agg(self, model, database, load, *, ctx_tokens):
        if load.batch_size == 502:
            raise aiconfigurator_core.Panic("index out of bounds")
        aiconfigurator_core.asked.append((model, database, vars(load), ctx_tokens))
        return Summary(load, model)
def get_backend(name):
    return Backend()
""",
}
QUESTION = Question(
    config={"architectures": ["LlamaForCausalLM"]},
    experts=False,
    gpu="h100-sxm",
    max_num_seqs=1024,
    max_num_batched_tokens=8192,
    prompt=1000,
    output=300,
    concurrency=16,
)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder with the stand-in, installed as pip would."""
    for name, text in STAND_IN.items():
        path = tmp_path / PACKAGE / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    panic = "class Panic(BaseException): ..."  # as pyo3's
    with (tmp_path / PACKAGE / "__init__.py").open("a") as file:
        file.write(f"\n{panic}\n")
    known = tmp_path / f"{PACKAGE}-0.12.9.dist-info"
    known.mkdir()
    (known / "METADATA").write_text(
        "Metadata-Version: 2.4\nName: aiconfigurator-core\nVersion: 0.12.9\n"
    )
    return tmp_path


@pytest.fixture
def asked(package: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """What the stand-in was asked."""
    monkeypatch.syspath_prepend(package)
    before = {n: m for n, m in sys.modules.items() if n.partition(".")[0] == PACKAGE}
    for name in before:
        del sys.modules[name]
    __import__(PACKAGE)
    yield sys.modules[PACKAGE].asked
    for name in [n for n in sys.modules if n.partition(".")[0] == PACKAGE]:
        del sys.modules[name]
    sys.modules.update(before)


def llama(**given: Any) -> EstimateReport:
    given = {"input_tokens": 1000, "output_tokens": 300, "concurrency": 16, **given}
    return estimate(LLAMA, **{"gpu": "h100-sxm", **given})


def test_its_answer_stands_beside_ours(asked: list[Any]) -> None:
    alone, both = llama(), llama(second_opinion=TOOL)
    assert both.to_dict()["second_opinion"] == {
        "tool": "aiconfigurator",
        "version": "0.12.9",
        "data": "vLLM 0.24.0",
        "ttft_ms": 16.0,
        "tpot_ms": 1.0,
        "output_tokens_per_second": 16.0,
        "answered": True,
        "reason": "",
    }
    assert "second_opinion" not in alone.to_dict()
    assert both.performance == alone.performance
    assert both.confidence == alone.confidence


def test_what_it_is_asked(asked: list[Any]) -> None:
    llama(prefix_hit_rate=0.25, input_tokens=20_000, tensor_parallel_size=2, second_opinion=TOOL)
    ((model, database, load, chunk),) = asked
    assert model["read"]["architectures"] == ["LlamaForCausalLM"]
    assert model["config"] == {
        "tp_size": 2,
        "pp_size": 1,
        "attention_dp_size": 1,
        "moe_tp_size": None,
        "moe_ep_size": None,
        "kvcache_quant_mode": "bfloat16",
        "system": "h100_sxm",
    }
    assert database == "SILICON"
    assert load == {"isl": 20_000, "osl": 300, "prefix": 5_000, "batch_size": 16}
    assert chunk == 8192  # max_num_batched_tokens of an H100


def test_the_cache_dtype_that_a_checkpoint_declares(asked: list[Any]) -> None:
    found = estimate(
        "llama-3.1-70b-instruct-fp8",
        gpu="h200-sxm",
        gpu_count=2,
        input_tokens=1000,
        output_tokens=300,
        second_opinion=TOOL,
    )
    assert found.second_opinion is not None
    assert found.second_opinion.output_tokens_per_second == 8


@pytest.mark.parametrize(("expert_parallel", "split"), [(False, (8, 1)), (True, (1, 8))])
def test_engines_that_share_experts(
    asked: list[Any], expert_parallel: bool, split: tuple[int, int]
) -> None:
    """2 ranks x 4 engines hold the experts together, and each engine has 4 of 16 requests."""
    question = replace(
        QUESTION,
        experts=True,
        tensor_parallel_size=2,
        data_parallel_size=4,
        expert_parallel=expert_parallel,
    )
    assert ask(TOOL, question).output_tokens_per_second == 16
    ((model, _, load, _),) = asked
    config = model["config"]
    assert (config["tp_size"], config["attention_dp_size"]) == (2, 4)
    assert (config["moe_tp_size"], config["moe_ep_size"]) == split
    assert load["batch_size"] == 4


def test_engines_that_share_nothing_are_counted(asked: list[Any]) -> None:
    found = ask(TOOL, replace(QUESTION, data_parallel_size=4))
    assert asked[0][0]["config"]["attention_dp_size"] == 1
    assert (found.ttft_ms, found.output_tokens_per_second) == (4, 4 * 16)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"gpu": "rtx-3090"}, "no measurements of vLLM on rtx-3090"),
        ({"concurrency": None}, "not a rate"),
        ({"concurrency": 10, "data_parallel_size": 4}, "do not divide"),
        ({"concurrency": 2000}, "no queue"),
        ({"quantization": "fp8"}, "quantization"),
        ({"output": 1}, "at least two tokens"),
        ({"kv_cache_dtype": "nvfp4"}, "KV cache in nvfp4"),
        ({"concurrency": 500}, "does not fit"),
        ({"concurrency": 501}, "does not hold so many"),
        ({"concurrency": 502}, "Panic: index out of bounds"),
        (
            {"config": {"architectures": ["Gemma3ForConditionalGeneration"]}},
            "ValueError: The architecture is not supported",
        ),
    ],
)
def test_no_answer_says_why(asked: list[Any], change: dict[str, Any], reason: str) -> None:
    found = ask(TOOL, replace(QUESTION, **change))
    assert not found.answered
    assert reason in found.reason
    assert (found.ttft_ms, found.tpot_ms, found.output_tokens_per_second) == (None, None, None)
    assert "Supported: many" not in found.reason


def test_another_version_without_what_is_asked(asked: list[Any], package: Path) -> None:
    (package / PACKAGE / "sdk" / "backends" / "factory.py").write_text("")
    found = ask(TOOL, QUESTION)
    assert not found.answered
    assert found.reason.startswith("AttributeError")


def test_an_interruption_is_no_answer(asked: list[Any], package: Path) -> None:
    (package / PACKAGE / "sdk" / "config.py").write_text("raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        ask(TOOL, QUESTION)


def test_another_tool() -> None:
    with pytest.raises(InputError, match="no tool") as caught:
        installed_version("a-crystal-ball")
    assert caught.value.fix == "one of: aiconfigurator"


def test_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, PACKAGE, None)
    with pytest.raises(InputError, match="not installed") as caught:
        llama(second_opinion=TOOL)
    assert caught.value.where == "--second-opinion"
    assert caught.value.fix == "pip install 'vllm-advisor[aiconfigurator]'"


WORDS = ("estimate", LLAMA, "--gpu", "h100-sxm", "--input-tokens", "1000", "--output-tokens", "300")


def test_the_command_without_the_package() -> None:
    if find_spec(PACKAGE) is not None:
        pytest.skip("the real package is installed here")
    found = run_cli(*WORDS, "--second-opinion", TOOL)
    assert found.returncode == 2
    assert "error: aiconfigurator is not installed" in found.stderr
    assert "--second-opinion" in found.stderr
    assert "fix: pip install 'vllm-advisor[aiconfigurator]'" in found.stderr
    assert "Traceback" not in found.stderr
    assert not found.stdout


def test_the_command_without_the_option() -> None:
    found = run_cli(*WORDS, "--format", "json")
    assert "second_opinion" not in json.loads(found.stdout)


def test_the_command_knows_its_tools() -> None:
    found = run_cli(*WORDS, "--second-opinion", "a-crystal-ball")
    assert found.returncode == 2
    assert "aiconfigurator" in found.stderr


def command(package: Path, *words: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(package), *filter(None, sys.path)])
    return subprocess.run(
        [sys.executable, "-m", "vllm_advisor", *WORDS, "--second-opinion", TOOL, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "PYTHONPATH": path, "NO_COLOR": "1"},
    )


def test_the_command_shows_both(package: Path) -> None:
    found = command(package, "--concurrency", "8")
    assert found.returncode == 0, found.stderr
    text = " ".join(found.stdout.split())
    assert "second opinion estimate aiconfigurator 0.12.9" in text
    assert "8.0 ms" in text
    assert "has measurements of vLLM 0.24.0" in text


def test_the_command_says_that_there_is_no_answer(package: Path) -> None:
    found = command(package, "--request-rate", "2")
    assert found.returncode == 0, found.stderr
    text = " ".join(found.stdout.split())
    assert "aiconfigurator 0.12.9 has no answer: it knows a number of requests at once" in text
    assert "second opinion estimate" not in text
