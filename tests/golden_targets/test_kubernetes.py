"""Target kubernetes: the kept bytes, the plan read back from them, and what a cluster would say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from golden_plans import NAMES, SPANNING, report
from judges.kubelet import expanded_words
from judges.manifests import folder_problems
from judges.schemas import schema_problems
from read_back import KEPT, assert_as_kept, engine_args, objects, replicas_of

from vllm_advisor.api.writing import write_artifacts
from vllm_advisor.errors import OutputError
from vllm_advisor.parse.kubernetes_semantics import manifest_problems
from vllm_advisor.render.names import object_name

VARIANTS = (
    (),
    ("namespace=llm", "labels={team: search}"),
    ("gpu_allocation=dra",),
    ("autoscaler=hpa", "max_replicas=9"),
    ("model_cache=ephemeral", "autoscaler=none", "monitoring=none"),
    ("storage_access_mode=ReadWriteMany", "storage_class_name=shared"),
    ("ingress_host=llm.example.com", "ingress_class_name=nginx", "ingress_tls_secret=cert"),
    ("api_key_secret=null", "hf_token_secret=null", "tolerations=[]"),
)


def controllers(found: list[dict]) -> dict[str, dict]:
    kinds = ("Deployment", "StatefulSet")
    return {o["metadata"]["name"]: o for o in found if o["kind"] in kinds}


@pytest.mark.parametrize("name", KEPT)
def test_files_are_as_kept(name: str, tmp_path: Path) -> None:
    assert_as_kept("kubernetes", name, name, tmp_path)


def test_files_in_another_environment_are_as_kept(tmp_path: Path) -> None:
    words = (
        "namespace=llm",
        "gpu_allocation=dra",
        "autoscaler=hpa",
        "image_registry=registry.example.com/mirror",
        "ingress_host=llm.example.com",
        "model_cache=ephemeral",
    )
    assert_as_kept("kubernetes", "contract-review", "contract-review-dra", tmp_path, *words)


@pytest.mark.parametrize("words", VARIANTS, ids=lambda w: " ".join(w) or "defaults")
@pytest.mark.parametrize("name", [name for name in NAMES if name != SPANNING])
def test_the_plan_reads_back_from_the_manifests(name: str, words: tuple[str, ...]) -> None:
    made = report(name, *words)
    everything = objects(made, "kubernetes")
    found = controllers(everything)
    instances = made.plan.deployment.instances
    assert len(found) == len(instances)
    for instance in instances:
        controller = found[object_name(made.plan, instance)]
        pod = controller["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        assert container["command"] == ["vllm", "serve"]
        args = engine_args(expanded_words(container["args"]), made.engine)
        assert args == instance.engine_args
        assert replicas_of(controller, everything) == instance.replicas
        if "gpu_allocation=dra" not in words:
            assert container["resources"]["limits"]["nvidia.com/gpu"] == str(instance.gpus)
        assert ("shm" in str(pod.get("volumes"))) == (instance.gpus > 1)


@pytest.mark.parametrize("words", VARIANTS, ids=lambda w: " ".join(w) or "defaults")
@pytest.mark.parametrize("name", NAMES)
def test_a_cluster_would_accept_them(name: str, words: tuple[str, ...]) -> None:
    found = objects(report(name, *words), "kubernetes")
    assert schema_problems(found) == []
    assert [str(p) for p in manifest_problems(found)] == []


@pytest.mark.parametrize("words", VARIANTS[:2], ids=lambda w: " ".join(w) or "defaults")
@pytest.mark.parametrize("name", KEPT)
def test_kubectl_reads_and_builds_what_was_meant(
    name: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    artifacts = report(name, *words).artifacts(("kubernetes",))
    write_artifacts(artifacts, tmp_path / "out", overwrite=False)
    assert folder_problems(tmp_path / "out" / "kubernetes") == []


def test_an_autoscaler_counts_requests_of_its_own_namespace() -> None:
    """Staging and production may hold the same plan under one Prometheus."""
    found = objects(report("contract-review", "namespace=llm"), "kubernetes")
    queries = [
        o["spec"]["triggers"][0]["metadata"]["query"] for o in found if o["kind"] == "ScaledObject"
    ]
    assert queries
    for query in queries:
        assert query.count('namespace="llm"') == query.count("sum(") == 2


def test_the_engine_waits_longer_than_its_default_only_where_the_probe_does() -> None:
    """contract-review: 9 minutes of probing; coding-agents: above vLLM's 10 minutes."""
    for name, waits in (("contract-review", False), ("coding-agents", True)):
        for controller in controllers(objects(report(name), "kubernetes")).values():
            (container,) = controller["spec"]["template"]["spec"]["containers"]
            env = {one["name"]: one.get("value") for one in container["env"]}
            probe = container["startupProbe"]
            budget = probe["periodSeconds"] * probe["failureThreshold"]
            assert (budget > 600) is waits
            assert env.get("VLLM_ENGINE_READY_TIMEOUT_S") == (str(budget) if waits else None)


def test_comments_know_whether_there_is_an_api_key() -> None:
    for target in ("kubernetes", "llm-d", "kserve", "helm-production-stack"):
        words = ("api_key_secret=null", "ingress_host=llm.example.com", "ingress_class_name=nginx")
        for artifact in report("contract-review", *words).target_files((target,)):
            assert "ask for no API key" not in artifact.text, artifact.path
            assert "API key guards" not in artifact.text, artifact.path


def test_a_claim_of_its_own_makes_a_stateful_set() -> None:
    made = report("contract-review")
    assert {o["kind"] for o in controllers(objects(made, "kubernetes")).values()} == {"StatefulSet"}
    shared = report("contract-review", "storage_access_mode=ReadWriteMany")
    kinds = [o["kind"] for o in objects(shared, "kubernetes")]
    assert kinds.count("Deployment") == kinds.count("PersistentVolumeClaim") == 2


def test_a_rollout_takes_spare_gpus_only_where_there_are_some() -> None:
    """4 GPUs, 2 in use: a new pod may start first. coding-agents uses all 8 of its node."""
    spare = objects(report("contract-review", "model_cache=ephemeral"), "kubernetes")
    full = objects(report("coding-agents", "model_cache=ephemeral"), "kubernetes")
    rollouts = [
        next(iter(controllers(o).values()))["spec"]["strategy"]["rollingUpdate"]
        for o in (spare, full)
    ]
    assert rollouts == [
        {"maxSurge": 1, "maxUnavailable": 0},
        {"maxSurge": 0, "maxUnavailable": 1},
    ]


def test_instances_of_one_model_are_scaled_by_their_own_requests() -> None:
    found = objects(report("contract-review"), "kubernetes")
    queries = [
        o["spec"]["triggers"][0]["metadata"]["query"] for o in found if o["kind"] == "ScaledObject"
    ]
    assert len(queries) == len(set(queries)) == 2
    for query in queries:
        assert query.count('model_name="meta-llama/Llama-3.1-8B-Instruct"') == 2
        assert query.count("app_kubernetes_io_instance=") == 2


def test_nothing_is_scaled_beyond_the_planned_gpus() -> None:
    """4 GPUs, 2 instances of one: the 2 that are left let each instance grow to 3."""
    found = objects(report("contract-review"), "kubernetes")
    most = [o["spec"]["maxReplicaCount"] for o in found if o["kind"] == "ScaledObject"]
    assert most == [3, 3]
    assert not [
        o for o in objects(report("coding-agents"), "kubernetes") if o["kind"] == "ScaledObject"
    ]


WORKLOAD = """
model: {model}
hardware: {{gpu: h100-sxm, count: 1}}
classes:
  - {{name: chat, prompt_tokens: 1000, output_tokens: 100, concurrent_requests: 10}}
"""


def folder_model(tmp_path: Path) -> Path:
    folder = tmp_path / "models" / "tiny"
    folder.mkdir(parents=True)
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 256,
        "intermediate_size": 512,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "num_hidden_layers": 4,
        "head_dim": 64,
        "vocab_size": 1024,
        "max_position_embeddings": 4096,
        "torch_dtype": "bfloat16",
    }
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_a_model_folder_is_mounted_read_only_from_its_claim(tmp_path: Path) -> None:
    from vllm_advisor.api.planning import plan

    folder = folder_model(tmp_path)
    made = plan(
        "w.yaml",
        text=WORKLOAD.format(model=folder),
        environment=("model_claim=weights", f"model_mount_path={folder.parent}"),
    )
    (controller,) = controllers(objects(made, "kubernetes")).values()
    pod = controller["spec"]["template"]["spec"]
    claims = [v["persistentVolumeClaim"] for v in pod["volumes"] if "persistentVolumeClaim" in v]
    assert claims == [{"claimName": "weights", "readOnly": True}]
    assert controller["kind"] == "Deployment"
    without = plan("w.yaml", text=WORKLOAD.format(model=folder))
    with pytest.raises(OutputError, match="no pod can see it") as caught:
        without.artifacts(("kubernetes",))
    assert "model_claim" in caught.value.fix


def test_a_claim_for_a_hub_model_is_told() -> None:
    with pytest.raises(OutputError, match="on the Hub"):
        report("contract-review", "model_claim=weights").artifacts(("kubernetes",))
