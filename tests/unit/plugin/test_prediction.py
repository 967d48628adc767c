"""Facts of a starting vLLM, and what is predicted of them."""

from __future__ import annotations

import dataclasses
import socket
import time
from types import SimpleNamespace
from typing import Any

import fake_vllm
import pytest

from vllm_advisor import plugin, size
from vllm_advisor.errors import UnknownFactError
from vllm_advisor.knowledge.gpus import find_gpu
from vllm_advisor.knowledge.model_profiles import find_model_profile
from vllm_advisor.plugin import checking, facts
from vllm_advisor.types.accelerator import Interconnect, Node
from vllm_advisor.types.source import Source, SourceKind

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> None:
        pytest.fail("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr("vllm_advisor.probe.hub.fetch_hub_model", refused)


@pytest.fixture
def h100(monkeypatch: pytest.MonkeyPatch) -> Node:
    found = Node(
        accelerator=find_gpu("h100-sxm"),
        gpu_count=2,
        interconnect=Interconnect.NVLINK,
        source=Source(SourceKind.NVML, "0/name"),
    )
    monkeypatch.setattr(facts, "node_of_probe", lambda _: found)
    monkeypatch.setattr(facts, "probe_node", lambda: None)
    return found


def cuda_config(model: str, hf_config: Any = None, **changed: Any) -> SimpleNamespace:
    config = fake_vllm.config(model)
    config.device_config.device_type = "cuda"
    config.model_config.hf_config = hf_config
    config.model_config.max_model_len = 16384
    config.parallel_config = SimpleNamespace(tensor_parallel_size=1, data_parallel_size=1)
    config.cache_config.gpu_memory_utilization = 0.9
    config.scheduler_config = SimpleNamespace(max_num_seqs=256, max_num_batched_tokens=8192)
    for name, value in changed.items():
        setattr(config, name, value)
    return config


def start(monkeypatch: pytest.MonkeyPatch, config: Any, *words: str, **args: Any) -> None:
    argv = ["vllm", "serve", config.model_config.model, "--host", "127.0.0.1", *words]
    engine_args = fake_vllm.install(monkeypatch, argv)
    plugin.preflight()
    engine_args(model=config.model_config.model, result=config, **args).create_engine_config()


@pytest.mark.usefixtures("h100")
def test_the_prediction_is_what_size_says(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    start(monkeypatch, cuda_config(LLAMA), "--max-model-len", "16384", max_model_len=16384)
    ours = size(
        LLAMA,
        gpu="h100-sxm",
        vllm_version="0.32.0",
        max_model_len=16384,
        gpu_memory_utilization=0.9,
        max_num_seqs=256,
        max_num_batched_tokens=8192,
    ).figures.capacity
    said = fake_vllm.lines(caplog)
    assert len(said) == 2, said
    assert "no errors, no warnings" in said[0]
    assert "not checked" not in said[0]
    assert f"= {ours.tokens:,} tokens, {ours.max_concurrency:.2f} requests of 16,384" in said[1]
    assert "weights 14.9" in said[1]


@pytest.mark.usefixtures("h100")
@pytest.mark.parametrize(("version", "told"), [("0.21.0", True), ("0.32.0+cpu", False)])
def test_a_version_that_was_not_compared_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, version: str, told: object
) -> None:
    argv = ["vllm", "serve", LLAMA, "--host", "127.0.0.1"]
    engine_args = fake_vllm.install(monkeypatch, argv, version)
    plugin.preflight()
    engine_args(model=LLAMA, result=cuda_config(LLAMA)).create_engine_config()
    (line,) = [line for line in fake_vllm.lines(caplog) if "predicted" in line]
    assert line.endswith("; this version of vLLM was not compared") is told


@pytest.mark.usefixtures("h100")
def test_a_model_nobody_knows_is_what_vllm_has_loaded(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    profile = find_model_profile(LLAMA)
    assert profile is not None
    loaded = SimpleNamespace(to_dict=lambda: profile.config | {"torch_dtype": "torch.bfloat16"})
    start(monkeypatch, cuda_config("own/fine-tune", loaded))
    assert any("predicted: weights 14.9" in line for line in fake_vllm.lines(caplog))


@pytest.mark.usefixtures("h100")
def test_what_is_not_modelled_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    loaded = SimpleNamespace(to_dict=lambda: {"architectures": ["NewForCausalLM"]})
    start(monkeypatch, cuda_config("own/new", loaded))
    assert "not known: the model (" in fake_vllm.lines(caplog)[0]
    assert not [line for line in fake_vllm.lines(caplog) if "predicted" in line]


def test_without_a_gpu_the_reason_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def nothing() -> None:
        raise UnknownFactError("no NVIDIA driver")

    monkeypatch.setattr(facts, "probe_node", nothing)
    start(monkeypatch, cuda_config(LLAMA))
    assert "the GPU (no NVIDIA driver)" in fake_vllm.lines(caplog)[0]


def test_the_gpus_are_those_that_are_visible(monkeypatch: pytest.MonkeyPatch, h100: Node) -> None:
    assert facts.node(cuda_config(LLAMA)) == h100
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert facts.node(cuda_config(LLAMA)).gpu_count == 1


def test_the_size_of_a_cpus_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    config = fake_vllm.config()
    assert facts.arguments(config, None)["block_size"] == 128
    for given, found in (("2.5", 5 << 29), ("0", None), ("x", None), ("inf", None), ("-1", None)):
        monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", given)
        assert facts.arguments(config, None).get("kv_cache_memory_bytes") == found


def test_arguments_are_those_that_are_no_default() -> None:
    @dataclasses.dataclass
    class Args:
        model: str = "m"
        enforce_eager: bool = False
        kv_cache_dtype: str = "auto"
        hf_overrides: dict[str, Any] = dataclasses.field(default_factory=dict)
        quantization: Any = None
        unheard_of: int = 1

    given = Args(enforce_eager=True, hf_overrides={"a": 1}, quantization=object(), unheard_of=2)
    assert facts.arguments(None, given) == {"enforce_eager": True, "hf_overrides": {"a": 1}}


@pytest.mark.usefixtures("h100")
def test_the_rehearsal_leaves_little_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_vllm.install(monkeypatch, ["vllm", "serve", LLAMA])
    checking.Preflight()._warming.result(60)
    begin = time.process_time()
    checking._examine(cuda_config(LLAMA), None)
    assert time.process_time() - begin < 0.5
