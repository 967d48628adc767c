"""Figures and fixes of the rules on pods and containers, and sources on which they are silent."""

from __future__ import annotations

import pytest
from checked_subject import judge

from vllm_advisor.types.finding import Finding, Severity

CONTAINER = """\
image: vllm/vllm-openai:v0.33.0
args: ["--model", "{model}"]
resources: {{limits: {{nvidia.com/gpu: {gpus}}}}}
"""
LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


def _one(text: str, file: str = "pod.yaml") -> Finding:
    (finding,) = (f for f in judge(text, file)[0] if f.rule.startswith("K8S"))
    return finding


def _container(more: str, *, model: str = LLAMA, gpus: int = 1) -> str:
    return CONTAINER.format(model=model, gpus=gpus) + more


@pytest.mark.parametrize(("ranks", "gib"), [(2, 2), (8, 8)])
def test_shared_memory_is_one_gib_for_each_gpu_and_two_at_least(ranks: int, gib: int) -> None:
    command = f"docker run --gpus {ranks} vllm/vllm-openai:v0.33.0 --model org/m -tp {ranks}"
    assert _one(command, "run.sh").fix == f"--shm-size {gib}g, or --ipc=host"


def test_ranks_of_several_pods_do_not_share_memory() -> None:
    two = '--model", "org/m", "-tp", "2", "--nnodes", "2", "--node-rank", "0'
    assert judge(_container("", model=two.removeprefix('--model", "')), "pod.yaml")[0] == []


@pytest.mark.parametrize(
    ("failures", "severity"),
    # 16.06 GB take 154 s at 100 MiB/s and 31 s at 500 MiB/s; with 300 s that is 485 s, in whole
    # minutes 540 s. Without the download it is 360 s, and half of that 180 s.
    [(18, Severity.ERROR), (19, Severity.WARNING), (53, Severity.WARNING)],
)
def test_a_probe_is_an_error_up_to_half_of_the_start(failures: int, severity: Severity) -> None:
    probe = "startupProbe: {httpGet: {path: /health, port: 8000}, periodSeconds: 10, failureThreshold: %d}"
    finding = _one(_container(probe % failures))
    assert (finding.rule, finding.severity) == ("K8S004", severity)
    assert dict(finding.evidence) == {"budget_seconds": 10 * failures, "startup_seconds": 540}
    assert finding.fix == "failureThreshold: 54 with periodSeconds: 10"


def test_memory_names_what_loads_and_what_is_best() -> None:
    # 8 + 4 GiB and 5 GiB of the 15 GiB that are read at a time; 12 + 15 GiB, rounded up, at best.
    text = _container("").replace("gpu: 1", "gpu: 1, memory: 16Gi")
    finding = _one(text)
    assert dict(finding.evidence) == {"needed_bytes": 17 << 30, "limit_bytes": 16 << 30}
    assert finding.fix == "a memory limit of 17Gi or more, at best 27Gi"


def test_shared_claims_are_an_error_where_no_node_has_the_gpus() -> None:
    text = """\
servingEngineSpec:
  strategy: {type: Recreate}
  modelSpec:
  - {name: m, repository: vllm/vllm-openai, tag: v0.33.0, modelURL: org/m, replicaCount: %d,
     requestGPU: 1, pvcStorage: 50Gi, vllmConfig: {enablePrefixCaching: true}}
"""
    assert _one(text % 16, "values.yaml").severity is Severity.WARNING
    assert _one(text % 17, "values.yaml").severity is Severity.ERROR


def test_servers_on_one_gpu_share_nine_tenths() -> None:
    three = "vllm serve org/m --gpu-memory-utilization 0.5 &\n" * 3
    finding = _one(three, "run.sh")
    assert (finding.rule, finding.location.line) == ("K8S012", 2)
    assert finding.fix == "a GPU for each, or --gpu-memory-utilization 0.3 for each"
    assert dict(finding.evidence) == {"servers": 3, "sum": 1.5}


@pytest.mark.parametrize(
    "text",
    [
        # kserve/kserve#5063
        """\
startupProbe:   {httpGet: {path: /health, port: 8000}, periodSeconds: 10, failureThreshold: 60}
livenessProbe:  {httpGet: {path: /health, port: 8000}, periodSeconds: 10, failureThreshold: 3}
""",
        # A public guide for EKS: one GPU, shared memory without its mount, no probes.
        """\
image: public.ecr.aws/deep-learning-containers/vllm:0.11.2-gpu-py312-ec2-soci
command: ["vllm", "serve"]
args: ["openai/gpt-oss-20b", "--tensor-parallel-size=1", "--max-model-len=20000"]
resources: {limits: {nvidia.com/gpu: 1}}
volumes: [{name: dshm, emptyDir: {medium: Memory}}]
""",
    ],
)
def test_what_works_is_not_reported(text: str) -> None:
    assert judge(text, "pod.yaml")[0] == []


def test_a_size_beyond_all_hosts_is_counted_in_no_time() -> None:
    found, _, _ = judge("vllm serve org/m -tp 1000000000000 &\n" * 2, "run.sh")
    assert [finding.rule for finding in found] == ["K8S012"]
