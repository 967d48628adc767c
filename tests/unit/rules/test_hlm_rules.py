"""production-stack's values: what its chart makes of them, and what it never tells."""

from __future__ import annotations

import json

import pytest
from checked_text import MODEL, VALUES, checked, found, unchecked

from vllm_advisor.knowledge.charts import STACK, load_chart_keys
from vllm_advisor.resources import data_root

CACHED = "      vllmConfig: {enablePrefixCaching: true%s}\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (MODEL + CACHED % "", []),
        (MODEL + "      vllmConfig: {maxModelLen: 8192}\n", [("HLM001", 9)]),
        (MODEL + '      vllmConfig: {extraArgs: ["--enable-prefix-caching"]}\n', []),
        (MODEL + "      vllmConfig: {enablePrefixCaching: false}\n", []),
        (MODEL + "      vllmConfig: {}\n", []),  # the chart writes no flag at all
        (MODEL + CACHED % ', extraArgs: ["--tensor-parallel-size", "2"]', []),
        (MODEL + CACHED % ', extraArgs: ["-tp=1"]', []),
        (MODEL + CACHED % ", tensorParallelSize: 2", []),
        (MODEL + CACHED % ", maxModelLength: 8192", [("HLM003", 9)]),
        (MODEL + "      gpus: 1\n", [("HLM003", 9)]),
        ("routerSpec: {routingLogics: session}\n", [("HLM003", 1)]),
        ("routerSpec: {resources: {anything: 1}}\n", []),
        ("routerSpec:\n  routingLogic: foo\n", [("HLM004", 2)]),
        ("routerSpec:\n  routingLogic: session\n", [("HLM004", 2)]),
        ("routerSpec:\n  serviceDiscovery: static\n", [("HLM004", 2)]),
        ("routerSpec:\n  enableRouter: false\n  routingLogic: foo\n", []),
        (MODEL.replace("name: chat", "name: Qwen3_8B"), [("HLM005", 4)]),
        # r- + name + -engine-service (15 characters): 2 + 46 + 15 = 63
        (MODEL.replace("name: chat", f"name: {'a' * 46}"), []),
        (MODEL.replace("name: chat", f"name: {'a' * 47}"), [("HLM005", 4)]),
        ("routerSpec:\n  resources: {limits: {memory: 500Mi}}\n", [("HLM007", 2)]),
        ("routerSpec:\n  resources: {limits: {memory: 2048Mi}}\n", []),
        ("cacheserverSpec:\n  replicaCount: 1\n", [("HLM008", 1)]),
        ("cacheserverSpec:\n  enabled: false\n", []),
        # 60 GiB + 8 GiB for the engine > 64 GiB; 56 + 8 are enough
        (
            MODEL
            + '      limitMemory: 64Gi\n      lmcacheConfig: {enabled: true, cpuOffloadingBufferSize: "60"}\n',
            [("HLM008", 10)],
        ),
        (
            MODEL
            + '      limitMemory: 64Gi\n      lmcacheConfig: {enabled: true, cpuOffloadingBufferSize: "56"}\n',
            [],
        ),
        (
            MODEL + "      lmcacheConfig: {enabled: true}\n" + CACHED % ', v0: "1"',
            [("HLM009", 10)],
        ),
        (
            (MODEL + "      lmcacheConfig: {enabled: true}\n" + CACHED % ", v0: 1").replace(
                "v0.33.0", "v0.8.5"
            ),
            [],
        ),
        (MODEL.replace("requestGPU: 1", 'requestGPU: "0.5"'), [("HLM010", 8)]),
        ("routerSpec:\n  serviceType: NodePort\n", [("HLM011", 2)]),
        ("routerSpec:\n  ingress: {enabled: true}\n", [("HLM011", 2)]),
        ("routerSpec:\n  serviceType: NodePort\n  vllmApiKey: {secretName: a, secretKey: b}\n", []),
        ("routerSpec:\n  serviceType: ClusterIP\n", []),
    ],
)
def test_values(text: str, expected: list[tuple[str, int]]) -> None:
    assert found(text, VALUES, "HLM") == expected


def test_a_large_number_is_told_as_the_argument_that_the_chart_makes_of_it() -> None:
    text = MODEL + CACHED % ", maxModelLen: 1048576"
    errors = {(f.rule, f.location.line) for f in checked(text, VALUES).findings}
    assert ("FLG002", 9) in errors
    assert any("1.048576e+06" in f.message for f in checked(text, VALUES).findings)


def test_an_item_alone_does_not_say_how_pods_are_replaced() -> None:
    item = "- name: chat\n  modelURL: Qwen/Qwen3-8B\n  requestGPU: 1\n"
    assert "K8S019" in unchecked(item, VALUES)
    assert found(item, VALUES, "K8S019") == []


def test_the_bundled_keys_are_those_that_the_judge_has() -> None:
    """One is data of the product, the other of its tests."""
    judge = data_root() / "tests" / "data" / "chart_keys" / f"{STACK}.json"
    assert load_chart_keys(STACK).keys == json.loads(judge.read_text("utf-8"))["keys"]
