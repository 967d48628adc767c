"""Autoscalers, metrics, Services and Ingresses around servers."""

from __future__ import annotations

import pytest
from checked_text import KUBERNETES, SERVER, VALUES, found, unchecked

HPA = """\
---
kind: HorizontalPodAutoscaler
metadata: {name: scaler}
spec:
  scaleTargetRef: {kind: Deployment, name: %s}
  metrics:
    - %s
"""
CPU = "{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}"
GPU = "{type: Pods, pods: {metric: {name: DCGM_FI_DEV_GPU_UTIL}, target: {averageValue: '80'}}}"
QUEUE = (
    "{type: Pods, pods: {metric: {name: vllm_num_requests_waiting}, target: {averageValue: '5'}}}"
)
KEDA = """\
---
kind: ScaledObject
metadata: {name: scaler}
spec:
  scaleTargetRef: {name: vllm}
  triggers:
    - type: prometheus
      metadata: {query: '%s'}
"""
OTHER = "---\n" + SERVER.replace("vllm}", "other}").replace('"Qwen/Qwen3-8B"', '"Qwen/Qwen3-4B"')


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SERVER + HPA % ("vllm", CPU), [("NET001", 19)]),
        (SERVER + HPA % ("vllm", GPU), [("NET001", 19)]),
        (SERVER + HPA % ("vllm", QUEUE), []),
        (SERVER + HPA % ("router", CPU), []),
        (HPA % ("vllm-chat", CPU), [("NET001", 7)]),
        (SERVER + KEDA % "avg(DCGM_FI_DEV_GPU_UTIL)", [("NET001", 20)]),
        (SERVER + KEDA % "sum(vllm_num_requests_waiting)", [("NET002", 20)]),
        (SERVER + KEDA % "max(vllm:gpu_cache_usage_perc)", [("NET002", 20)]),
        (SERVER + KEDA % "sum(vllm:num_requests_waiting)", []),
        (SERVER + OTHER + KEDA % "sum(vllm:num_requests_waiting)", [("NET002", 33)]),
        (SERVER + OTHER + KEDA % 'sum(vllm:num_requests_waiting{model_name="a"})', []),
        ("expr: vllm_num_requests_running > 5\n", [("NET002", 1)]),
    ],
)
def test_autoscalers_and_metrics(text: str, expected: list[tuple[str, int]]) -> None:
    assert found(text, KUBERNETES, "NET") == expected


def test_what_is_scaled_may_not_be_in_the_source() -> None:
    assert "NET001" in unchecked(HPA % ("frontend", CPU), KUBERNETES)


SERVICE = "---\nkind: Service\nmetadata: {name: llm}\nspec: {selector: {%s}}\n"


@pytest.mark.parametrize(
    ("second", "selector", "lines"),
    [
        ('"Qwen/Qwen3-4B"', "team: a", [30]),
        ('"Qwen/Qwen3-8B", "--max-model-len", "8192"', "team: a", [30]),
        ('"Qwen/Qwen3-8B", "--served-model-name", "long"', "team: a", [30]),
        ('"Qwen/Qwen3-8B"', "team: a", []),
        ('"Qwen/Qwen3-4B"', "app: vllm", []),
    ],
)
def test_services(second: str, selector: str, lines: list[int]) -> None:
    first = SERVER.replace("labels: {app: vllm}", "labels: {app: vllm, team: a}")
    other = first.replace("vllm}", "other}").replace("app: vllm,", "app: other,")
    other = "---\n" + other.replace('"Qwen/Qwen3-8B"', second)
    text = first + other + SERVICE % selector
    assert found(text, KUBERNETES, "NET") == [("NET003", line - 1) for line in lines]


INGRESS = """\
---
kind: Ingress
metadata: {name: way, annotations: {%s}}
spec:
  ingressClassName: %s
  rules:
    - http: {paths: [{path: /v1, backend: {service: {name: llm}}}]}
"""
LONG, LARGE = (
    f"nginx.ingress.kubernetes.io/proxy-{name}"
    for name in ('read-timeout: "3600"', "body-size: 64m")
)


@pytest.mark.parametrize(
    ("notes", "kind", "lines"),
    [
        ("", "nginx", [20, 20]),
        (LONG, "nginx", [20]),
        (f"{LONG}, {LARGE}", "nginx", []),
        (LARGE.replace("64m", '"0"') + ", " + LONG, "nginx", []),  # 0 is no limit
        (LARGE + ', nginx.ingress.kubernetes.io/proxy-read-timeout: "30"', "nginx", [19]),
        ("", "traefik", []),
    ],
)
def test_ingresses(notes: str, kind: str, lines: list[int]) -> None:
    text = SERVER + SERVICE % "app: vllm" + INGRESS % (notes, kind)
    assert found(text, KUBERNETES, "NET") == [("NET004", line) for line in lines]


def test_the_routers_own_ingress() -> None:
    text = "routerSpec:\n  ingress: {enabled: true, className: nginx}\n"
    assert found(text, VALUES, "NET") == [("NET004", 2), ("NET004", 2)]
