"""Target kserve: the same bytes as kept, and vLLM started as planned, step by step as KServe does."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from golden_plans import NAMES, SPANNING, report
from hypothesis import given, settings
from hypothesis import strategies as st
from judges.kserve import NAMESPACE, served_argv
from judges.kubectl import kustomize, yaml_problems
from judges.schemas import schema_problems
from other_plans import args_of, with_instances
from read_back import KEPT, assert_as_kept

from vllm_advisor.errors import OutputError
from vllm_advisor.parse.serve_command import parse_serve_command
from vllm_advisor.render.kserve import evaluated, model_uri, render
from vllm_advisor.types.decision import Location
from vllm_advisor.types.engine import EngineArgs
from vllm_advisor.types.environment import Environment, GpuAllocation
from vllm_advisor.types.plan import Instance, Plan

ON_ONE_NODE = [name for name in NAMES if name != SPANNING]
SHOWN = (*KEPT, "context-parallel")
PLACE = Environment(
    namespace=NAMESPACE,
    labels={"team": "legal", "app.kubernetes.io/name": "shadowed"},
    image_pull_secrets=("mirror",),
    node_selector={"pool": "gpu"},
    runtime_class_name="nvidia",
    priority_class_name="serving",
)


def services(of: Plan, name: str = "contract-review") -> dict[str, dict[str, Any]]:
    """The LLMInferenceServices by the instances they are made for."""
    files = {a.path: a.text for a in render(of, report(name).engine)}
    texts = [text for path, text in files.items() if not path.endswith("kustomization.yaml")]
    instances = of.deployment.instances
    return {i.name: yaml.safe_load(text) for i, text in zip(instances, texts, strict=True)}


def started_alone(args: EngineArgs) -> Plan:
    """A plan of one instance with these arguments."""
    of = report("contract-review").plan
    return with_instances(of, dataclasses.replace(of.deployment.instances[0], engine_args=args))


def started_with(service: dict[str, Any], name: str = "contract-review") -> dict[str, Any]:
    """What vLLM reads from the command line that KServe makes of a service."""
    with tempfile.TemporaryDirectory() as scratch:
        argv = served_argv(service, Path(scratch))
    where = Location(file="argv", line=1)
    command = parse_serve_command([(word, where) for word in ["vllm", *argv]], report(name).engine)
    assert not command.unknown
    assert not command.problems
    assert command.engine_args.model == "/mnt/models"
    return command.engine_args.as_dict()


def expected(instance: Instance, model_name: str) -> dict[str, Any]:
    """The plan's arguments; the port and one served name more are KServe's own."""
    args = instance.engine_args
    served = args.get("served_model_name") or [args.model]
    return {
        **args.as_dict(),
        "port": 8000,
        "disable_access_log_for_endpoints": "/health,/metrics,/ping",
        "served_model_name": [*served, f"publishers/{NAMESPACE}/models/{model_name}"],
    }


@pytest.mark.parametrize("name", SHOWN)
def test_files_are_as_kept(name: str, tmp_path: Path) -> None:
    assert_as_kept("kserve", name, name, tmp_path)


@pytest.mark.parametrize("name", ON_ONE_NODE)
def test_vllm_is_started_with_what_was_planned(name: str) -> None:
    kept = report(name).plan
    for instance_name, service in services(kept, name).items():
        instance = next(i for i in kept.deployment.instances if i.name == instance_name)
        spec, (main,) = service["spec"], service["spec"]["template"]["containers"]
        assert started_with(service, name) == expected(instance, spec["model"]["name"])
        assert spec["model"]["uri"] == f"hf://{instance.engine_args.model}"
        assert spec["replicas"] == instance.replicas
        assert main["resources"]["limits"]["nvidia.com/gpu"] == str(instance.gpus)
        assert main["resources"]["requests"]["nvidia.com/gpu"] == str(instance.gpus)
        assert main["image"] == f"vllm/vllm-openai:v{kept.vllm_version}"


@pytest.mark.parametrize("name", ON_ONE_NODE)
def test_routes_tell_the_instances_apart(name: str) -> None:
    names = [s["spec"]["model"]["name"] for s in services(report(name).plan, name).values()]
    assert names == [i.name for i in report(name).plan.deployment.instances]


@pytest.mark.parametrize("place", [Environment(), PLACE, "dra"], ids=["plain", "full", "dra"])
def test_kserves_schema_and_kubectl_take_it(place: Any, tmp_path: Path) -> None:
    dra = dataclasses.replace(PLACE, gpu_allocation=GpuAllocation.DRA)
    for name in SHOWN:
        kept = report(name).plan
        kept = dataclasses.replace(kept, environment=dra if place == "dra" else place)
        folder = tmp_path / name
        folder.mkdir()
        for artifact in render(kept, report(name).engine):
            (folder / Path(artifact.path).name).write_text(artifact.text, encoding="utf-8")
            assert yaml_problems(artifact.text) == [] or "kustomization" in artifact.path
        built = kustomize(folder)
        assert schema_problems(built) == []
        assert {o["metadata"]["name"]: o for o in built} == {
            s["metadata"]["name"]: s for s in services(kept, name).values()
        }


def test_a_place_of_its_own() -> None:
    kept = dataclasses.replace(report("coding-agents").plan, environment=PLACE)
    (service,) = services(kept, "coding-agents").values()
    spec = service["spec"]
    assert service["metadata"]["namespace"] == NAMESPACE
    assert spec["labels"] == {"team": "legal"}, "KServe's own labels select the pods"
    template = spec["template"]
    assert template["imagePullSecrets"] == [{"name": "mirror"}]
    assert template["runtimeClassName"] == "nvidia"
    assert template["priorityClassName"] == "serving"
    assert template["nodeSelector"] == {"pool": "gpu"}
    assert template["tolerations"] == list(PLACE.tolerations)
    (term,) = template["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["key"] == "nvidia.com/gpu.product"


def test_gpus_claimed_by_dra_are_kserves_own_claim() -> None:
    place = Environment(gpu_allocation=GpuAllocation.DRA)
    kept = dataclasses.replace(report("coding-agents").plan, environment=place)
    (service,) = services(kept, "coding-agents").values()
    (instance,) = kept.deployment.instances
    assert service["metadata"]["annotations"] == {
        "serving.kserve.io/exp-dra-device-class": "gpu.nvidia.com",
        "serving.kserve.io/exp-dra-device-count": str(instance.gpus),
        "serving.kserve.io/exp-dra-cel-selector": "device.attributes['gpu.nvidia.com'].productName"
        f" == '{kept.node.accelerator.name}'",
        "serving.kserve.io/exp-dra-container-name": "main",
    }
    template = service["spec"]["template"]
    assert "affinity" not in template
    assert "nvidia.com/gpu" not in template["containers"][0]["resources"]["limits"]


def test_the_pod_holds_the_weights_and_the_probe_waits_for_reading_them() -> None:
    """Qwen3-Coder-480B takes 894.36 GiB: with a fifth for the download
    1,074 + 10 on disk, whatever model_cache says.

    Read at 500 MiB/s: 894.36 x 1024 / 500 = 1,832 s, and 300 s more: 2,132 s, in minutes 2,160;
    the download is over by then.
    """
    kept = report("coding-agents").plan
    (service,) = services(kept, "coding-agents").values()
    template = service["spec"]["template"]
    (main,), (fetch,) = template["containers"], template["initContainers"]
    size = kept.figure(f"{kept.deployment.instances[0].name}.weights.checkpoint").value
    assert f"{size / 2**30:.2f}" == "894.36"
    assert main["resources"]["limits"]["ephemeral-storage"] == "1084Gi"
    assert main["startupProbe"] == {"periodSeconds": 10, "failureThreshold": 216}
    env = {e["name"]: e for e in main["env"]}
    assert env["VLLM_ENGINE_READY_TIMEOUT_S"]["value"] == "2160"
    assert fetch["name"] == "storage-initializer"
    assert fetch["resources"]["limits"]["memory"] == main["resources"]["requests"]["memory"]
    assert "HF_TOKEN" in {e["name"] for e in fetch["env"]}
    assert template["volumes"] == [
        {"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}}
    ]


def test_a_small_model_is_given_the_time_of_the_preset() -> None:
    (main,) = services(report("interactive-chat").plan, "interactive-chat")["chat"]["spec"][
        "template"
    ]["containers"]
    assert main["startupProbe"] == {"periodSeconds": 10, "failureThreshold": 60}


def test_a_folder_comes_from_its_claim() -> None:
    of = started_alone(args_of("/data/llama//8b"))
    place = Environment(model_claim="weights", model_mount_path="/data")
    (service,) = services(dataclasses.replace(of, environment=place)).values()
    spec = service["spec"]
    assert spec["model"]["uri"] == "pvc://weights/llama/8b"
    assert "initContainers" not in spec["template"]
    (main,) = spec["template"]["containers"]
    assert {"name": "HF_HUB_OFFLINE", "value": "1"} in main["env"]
    assert started_with(service)["served_model_name"][0] == "/data/llama//8b", "as vLLM names it"


@pytest.mark.parametrize(
    ("model", "values", "uri"),
    [
        ("Qwen/Qwen3-8B", {}, "hf://Qwen/Qwen3-8B"),
        ("Qwen/Qwen3-8B", {"revision": "v1.0"}, "hf://Qwen/Qwen3-8B:v1.0"),
        ("/models/a/b", {}, "pvc://weights/a/b"),
        ("/models/", {}, "pvc://weights"),
        ("gpt2", {}, None),
        ("a/b/c", {}, None),
        ("a/b?x", {}, None),
        ("Qwen/Qwen3-8B", {"revision": "refs/pr/1"}, None),
        ("/models/../etc", {}, None),
        ("/models/a b", {}, None),
        ("/models/a%2fb", {}, None),
    ],
)
def test_model_uris(model: str, values: dict[str, Any], uri: str | None) -> None:
    place = Environment(model_claim="weights")
    if uri is not None:
        assert model_uri(args_of(model, **values), place) == uri
        return
    with pytest.raises(OutputError, match="KServe cannot get"):
        model_uri(args_of(model, **values), place)


def test_several_nodes_are_refused() -> None:
    with pytest.raises(OutputError, match="16 GPUs on 2 nodes") as refused:
        services(report(SPANNING).plan, SPANNING)
    assert "target kubernetes" in refused.value.fix


PIECES = [*"${}()`'\"\\ab-/ \n\t;&|<>#*?~!=%[]^:é🎉", "{{", "}}", "{{- ", "$(X)", "$X", "12345e67"]
HOSTILE = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


@given(words=st.lists(HOSTILE, min_size=1, max_size=6))
@settings(max_examples=150)
def test_any_word_arrives_as_it_was(words: list[str]) -> None:
    service = {
        "metadata": {"name": "x"},
        "spec": {
            "model": {"name": "chat"},
            "template": {"containers": [{"args": [evaluated(word) for word in words]}]},
        },
    }
    with tempfile.TemporaryDirectory() as scratch:
        argv = served_argv(service, Path(scratch))
    assert argv[-len(words) :] == words


# Dashes come first in none of them: such a name is refused before it gets here.
@given(served=st.lists(HOSTILE, min_size=1, max_size=3), template=HOSTILE, override=HOSTILE)
@settings(max_examples=100)
def test_hostile_values_change_nothing_else(
    served: list[str], template: str, override: str
) -> None:
    args = args_of(
        "org/name",
        served_model_name=[f"a{name}" for name in served],
        chat_template=f"a{template}",
        hf_overrides={override: {override: [override]}},
        port=9000,
    )
    of = started_alone(args)
    (service,) = services(of).values()
    assert schema_problems([service], versions=["1.37"]) == []
    name = service["spec"]["model"]["name"]
    assert started_with(service) == expected(of.deployment.instances[0], name)


@given(model=HOSTILE, revision=HOSTILE)
def test_a_hostile_model_is_refused_or_named_in_full(model: str, revision: str) -> None:
    """What comes through is no URL syntax: Go's parser gives it back as it is."""
    args = args_of(f"o/{model}", revision=revision)
    try:
        uri = model_uri(args, Environment())
    except OutputError:
        return
    assert uri == f"hf://o/{model}:{revision}"
    assert set(model + revision) <= set("ab-é🎉12345e67") - {"é", "🎉"}
