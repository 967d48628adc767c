"""Values for production-stack: what its schema says, what nothing reads, and what Helm makes of it.

The traps are those that rendering the chart 0.1.12 showed. ``VLLM_STACK_CHART=FOLDER`` holds the
chart itself against the stand-in.
"""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from typing import Any

import helm_python
import pytest
from judges.helm import lint_problems, rendered
from judges.production_stack import (
    CHART,
    engine_commands,
    engine_pods,
    stack_values_problems,
    without_subcharts,
)
from judges.schemas import schema_problems

VALUES: dict[str, Any] = {
    "servingEngineSpec": {
        "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
        "modelSpec": [{
            "name": "contracts", "repository": "vllm/vllm-openai", "tag": "v0.33.0",
            "modelURL": "Qwen/Qwen3-8B", "replicaCount": 2, "requestCPU": 4,
            "requestMemory": "48Gi", "requestGPU": 2, "pvcStorage": "100Gi", "shmSize": "8Gi",
            "vllmConfig": {
                "enablePrefixCaching": True, "maxModelLen": 32768, "tensorParallelSize": 2,
                "extraArgs": ["--kv-cache-dtype", "fp8"],
            },
        }],
    },
    "routerSpec": {"routingLogic": "session", "sessionKey": "x-user-id"},
}  # fmt: skip
CHARTS = [CHART] + [Path(folder) for folder in [os.environ.get("VLLM_STACK_CHART")] if folder]


@pytest.fixture(params=CHARTS, ids=lambda chart: chart.parts[-1])
def chart(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A chart to render; the real one without its subcharts."""
    return without_subcharts(request.param, tmp_path)


def changed(**changes: Any) -> dict[str, Any]:
    """The values with changes at ``spec`` (modelSpec), ``config`` (vllmConfig) or the top."""
    values = copy.deepcopy(VALUES)
    spec = values["servingEngineSpec"]["modelSpec"][0]
    for where, change in changes.items():
        node = {"spec": spec, "config": spec["vllmConfig"]}.get(where, values.get(where))
        node.update(change)
        for key in [key for key, value in node.items() if value is None]:
            del node[key]
    return values


def as_text(values: dict[str, Any]) -> str:
    return json.dumps(values)  # which is YAML, and read alike by all


def test_good_values_pass(chart: Path) -> None:
    assert stack_values_problems(VALUES) == []
    objects = rendered(chart, as_text(VALUES))
    assert schema_problems(objects) == []
    # The chart's own template leaves nothing to warn of either.
    assert [one for one in lint_problems(chart, as_text(VALUES)) if "icon" not in one] == []


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (changed(config={"maxModelLen": "16k"}), "maxModelLen: '16k' is not of type 'integer'"),
        (changed(routerSpec={"routingLogic": "length"}), "routingLogic: 'length' is not one of"),
        (changed(spec={"replicas": 2}), "modelSpec[0].replicas: no template reads it"),
        (changed(config={"kvCacheDtype": "fp8"}), "vllmConfig.kvCacheDtype: no template reads"),
        (changed(spec={"hf_token": {"secret": "s"}}), "hf_token.secret: no template reads it"),
        (changed(servingEngineSpec={"enableServiceLinks": False}), ".enableServiceLinks: no"),
        ({"engine": {}}, "$.engine: no template reads it"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_values(values: dict[str, Any], expected: str) -> None:
    (problem,) = stack_values_problems(values)
    assert expected in problem


@pytest.mark.parametrize(
    "values",
    [
        changed(spec={"chatTemplate": "a.jinja", "chatTemplateConfigMap": "{{ messages }}"}),
        changed(spec={"enableTool": True, "toolCallParser": "hermes"}),
        changed(spec={"pvcExistingClaimName": "c", "pdb": {"enabled": True, "maxUnavailable": 1}}),
        changed(servingEngineSpec={"env": [{"name": "A", "value": "1"}]}),
        changed(config={"prometheusMultiprocDir": "/tmp/p"}),
        changed(spec={"nodeSelectorTerms": [{"matchExpressions": [{"key": "a"}]}]}),
        changed(routerSpec={"route": {"main": {"enabled": True, "matches": [{"x": {"y": 1}}]}}}),
        {"kube-prometheus-stack": {"enabled": False, "any": {"thing": 1}}},
        {"extraObjects": [{"apiVersion": "v1", "kind": "ConfigMap"}]},
    ],
    ids=lambda values: next(iter(values)),
)
def test_keys_that_the_schema_lacks_and_templates_read(values: dict[str, Any]) -> None:
    assert stack_values_problems(values) == []


def command(values: dict[str, Any], chart: Path = CHART) -> list[str]:
    return engine_commands(as_text(values), chart=chart)["contracts"]


def test_values_become_the_command(chart: Path) -> None:
    assert command(VALUES, chart) == [
        "vllm", "serve", "Qwen/Qwen3-8B", "--host", "0.0.0.0", "--port", "8000",  # noqa: S104
        "--enable-prefix-caching", "--max-model-len", "32768", "--tensor-parallel-size", "2",
        "--kv-cache-dtype", "fp8",
    ]  # fmt: skip


def test_every_setting_in_the_charts_order(chart: Path) -> None:
    settings = {
        "enableChunkedPrefill": False, "enablePrefixCaching": False, "dtype": "bfloat16",
        "maxNumSeqs": 64, "gpuMemoryUtilization": 0.9, "maxLoras": 4, "runner": "pooling",
        "convert": "embed",
    }  # fmt: skip
    assert command(changed(config=settings), chart)[7:] == [
        "--no-enable-chunked-prefill", "--no-enable-prefix-caching", "--max-model-len", "32768",
        "--dtype", "bfloat16", "--tensor-parallel-size", "2", "--max-num-seqs", "64",
        "--gpu_memory_utilization", "0.9", "--max_loras", "4", "--runner", "pooling",
        "--convert", "embed", "--kv-cache-dtype", "fp8",
    ]  # fmt: skip


def test_prefix_caching_left_out_is_off(chart: Path) -> None:
    """vLLM's default is on."""
    assert "--no-enable-prefix-caching" in command(
        changed(config={"enablePrefixCaching": None}), chart
    )
    without = changed(spec={"vllmConfig": None})
    assert not [word for word in command(without, chart) if "prefix" in word]


def test_integers_from_a_million_on_turn_into_floats(chart: Path) -> None:
    """vLLM refuses ``1.048576e+06``; as text it passes, against the schema."""
    words = command(changed(config={"maxModelLen": 1_048_576}), chart)
    assert words[words.index("--max-model-len") + 1] == "1.048576e+06"
    words = command(changed(config={"maxModelLen": "1048576"}), chart)
    assert words[words.index("--max-model-len") + 1] == "1048576"
    words = command(changed(config={"maxModelLen": 999_999}), chart)
    assert words[words.index("--max-model-len") + 1] == "999999"


def test_shared_memory_comes_with_tensor_parallel_size_only(chart: Path) -> None:
    def volumes(values: dict[str, Any]) -> dict[str, Any]:
        (pod,) = engine_pods(as_text(values), chart=chart)
        return {one["name"].rpartition("-")[2]: one for one in pod["spec"]["volumes"]}

    assert volumes(VALUES)["shm"]["emptyDir"] == {"medium": "Memory", "sizeLimit": "8Gi"}
    assert volumes(changed(spec={"shmSize": None}))["shm"]["emptyDir"]["sizeLimit"] == "20Gi"
    extra = {"tensorParallelSize": None, "extraArgs": ["--tensor-parallel-size", "2"]}
    assert set(volumes(changed(config=extra))) == {"storage"}


def test_helm_never_enforces_the_schema(chart: Path) -> None:
    wrong = as_text(changed(routerSpec={"routingLogic": "length"}, config={"unknown": 1}))
    assert rendered(chart, wrong)
    (chart / ".helmignore").unlink()
    with pytest.raises(helm_python.HelmError, match="routingLogic"):
        rendered(chart, wrong)


def test_names_are_not_limited(chart: Path) -> None:
    """An API server refuses a hostname or a Service above 63 characters."""
    long = changed(spec={"name": "contracts-" + "x" * 50})
    (pod,) = engine_pods(as_text(long), chart=chart)
    assert len(pod["spec"]["hostname"]) == len("demo-") + 60 + len("-vllm-stack")
    names = [
        one["metadata"]["name"]
        for one in rendered(chart, as_text(long))
        if one["kind"] == "Service"
    ]
    assert max(map(len, names)) == len("demo-") + 60 + len("-engine-service")


def test_an_update_needs_twice_the_gpus_unless_told_otherwise(chart: Path) -> None:
    def strategy(values: dict[str, Any]) -> dict[str, Any]:
        objects = rendered(chart, as_text(values))
        (one,) = (
            one for one in objects
            if one["kind"] == "Deployment" and one["metadata"]["name"].endswith("-vllm")
        )  # fmt: skip
        return one["spec"]["strategy"]["rollingUpdate"]

    assert strategy(VALUES) == {"maxSurge": 0, "maxUnavailable": 1}
    default = changed(servingEngineSpec={"strategy": {}})
    assert strategy(default) == {"maxSurge": "100%", "maxUnavailable": 0}


def test_words_survive_helm(chart: Path) -> None:
    words = ["--hf-overrides", '{"rope_parameters": {"factor": 4.0}}', "{{ .Release.Name }}", "a: b",
             "1e3", "it's", "é", "$(HOME)", "yes", ""]  # fmt: skip
    assert command(changed(config={"extraArgs": words}), chart)[-len(words) :] == words


def test_a_required_value_is_asked_for(chart: Path) -> None:
    with pytest.raises(helm_python.HelmError, match="tag"):
        rendered(chart, as_text(changed(spec={"tag": None})))
