"""Values for production-stack's chart: the bytes as kept, and what Helm makes of them.

Helm renders a stand-in for the chart (``tests/data/charts``), and the chart itself where
``VLLM_STACK_CHART`` names its folder: ``git clone`` of vllm-project/production-stack, ``helm/``.
"""

from __future__ import annotations

import dataclasses
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from golden_plans import EVERY_SETTING, NAMES, SPANNING, report
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from judges.helm import lint_problems, rendered, values_problems
from judges.production_stack import CHART, engine_pods, stack_values_problems, without_subcharts
from judges.schemas import schema_problems
from other_plans import with_args, with_instances
from read_back import KEPT, assert_as_kept

from vllm_advisor.errors import OutputError
from vllm_advisor.parse.serve_command import parse_serve_command
from vllm_advisor.render.production_stack import render
from vllm_advisor.types.decision import Location
from vllm_advisor.types.engine import EngineArgs
from vllm_advisor.types.environment import Autoscaler, Environment, GpuAllocation, ModelCache
from vllm_advisor.types.plan import Instance

ON_ONE_NODE = [name for name in NAMES if name != SPANNING]  # the chart has one pod a replica
FITTING = [*ON_ONE_NODE, EVERY_SETTING]
SHOWN = (*KEPT, EVERY_SETTING)
REAL = os.environ.get("VLLM_STACK_CHART")
RELEASE = "r" * 20  # as long as the file's first comment allows
PLACE = Location(file="values.yaml", line=1)
# What the chart says on its own: where every engine listens.
OF_THE_CHART = {"host", "port"}
needs_chart = pytest.mark.skipif(not REAL, reason="VLLM_STACK_CHART names no folder")


@cache
def values_text(name: str, **environment: Any) -> str:
    kept = report(name).plan
    place = dataclasses.replace(kept.environment, **environment)
    (file,) = render(dataclasses.replace(kept, environment=place), report(name).engine)
    return file.text


def specs(text: str) -> list[dict[str, Any]]:
    return yaml.safe_load(text)["servingEngineSpec"]["modelSpec"]


@pytest.fixture(
    scope="module",
    params=[CHART, pytest.param(REAL, marks=needs_chart)],
    ids=["stand-in", "chart"],
)
def chart(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return without_subcharts(Path(request.param), tmp_path_factory.mktemp("chart"))


@pytest.fixture(scope="module")
def real_chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return without_subcharts(Path(str(REAL)), tmp_path_factory.mktemp("chart"))


@pytest.mark.parametrize("name", SHOWN)
def test_files_are_as_kept(name: str, tmp_path: Path) -> None:
    assert_as_kept("helm-production-stack", name, name, tmp_path)


@pytest.mark.parametrize("name", FITTING)
def test_only_keys_that_the_chart_reads(name: str) -> None:
    assert stack_values_problems(yaml.safe_load(values_text(name))) == []


@pytest.mark.parametrize("name", FITTING)
def test_helm_reads_the_values_as_written(name: str) -> None:
    assert values_problems(values_text(name)) == []


@pytest.mark.parametrize("name", FITTING)
def test_what_helm_starts_is_the_plan(name: str, chart: Path) -> None:
    """Arguments, replicas and GPUs of every engine, and shared memory where several GPUs talk."""
    pods = engine_pods(values_text(name), chart=chart, release=RELEASE)
    instances = {i.name: i for i in report(name).plan.deployment.instances}
    by_name = {pod["metadata"]["labels"]["model"]: pod for pod in pods}
    assert set(by_name) == set(instances)
    for spec in specs(values_text(name)):
        instance = instances[spec["name"]]
        assert spec["replicaCount"] == instance.replicas
        container = by_name[spec["name"]]["spec"]["containers"][0]
        for kind in ("requests", "limits"):
            assert container["resources"][kind]["nvidia.com/gpu"] == str(instance.gpus)
        mounts = [mount["mountPath"] for mount in container.get("volumeMounts", [])]
        assert ("/dev/shm" in mounts) == (instance.gpus > 1)
        assert_started(container["command"], instance, name)


def assert_started(command: list[str], instance: Instance, name: str) -> None:
    words = [kubernetes(word) for word in command]
    read = parse_serve_command([(word, PLACE) for word in words], report(name).engine)
    assert (read.unknown, read.problems, read.unresolved) == ((), (), ())
    assert as_dict(read.engine_args) == as_dict(instance.engine_args)
    assert read.engine_args.get("port") == 8000


def as_dict(args: EngineArgs) -> dict[str, Any]:
    return {"model": args.model} | {
        arg.dest: arg.value for arg in args if arg.dest not in OF_THE_CHART
    }


def kubernetes(word: str) -> str:
    """A word of command or args after Kubernetes has expanded it: nothing may be left to expand."""
    assert "$" not in word.replace("$$", "")
    return word.replace("$$", "$")


@needs_chart
@pytest.mark.parametrize("name", FITTING)
def test_a_cluster_takes_what_the_chart_renders(name: str, real_chart: Path) -> None:
    objects = rendered(real_chart, values_text(name), release=RELEASE)
    assert schema_problems(objects) == []
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for one in objects:
        by_kind.setdefault(one["kind"], []).append(one)
        assert len(one["metadata"]["name"]) <= 63
        labels = one["metadata"].get("labels", {})
        assert all(len(value) <= 63 for value in labels.values())
    accounts = {one["metadata"]["name"] for one in by_kind["ServiceAccount"]}
    kept = report(name).plan
    for deployment in by_kind["Deployment"]:
        spec = deployment["spec"]["template"]["spec"]
        assert spec["serviceAccountName"] in accounts
        container = spec["containers"][0]
        assert ":latest" not in container["image"]
        variables = [one["name"] for one in container["env"]]
        assert len(variables) == len(set(variables))
        model = deployment["metadata"]["labels"].get("model")
        if model is None:
            continue
        assert len(spec["hostname"]) <= 63
        instance = next(i for i in kept.deployment.instances if i.name == model)
        assert deployment["spec"]["replicas"] == instance.replicas
        env = {one["name"]: one.get("value") for one in container["env"]}
        probe = container["startupProbe"]
        budget = probe["periodSeconds"] * probe["failureThreshold"]
        patience = env.get("VLLM_ENGINE_READY_TIMEOUT_S")  # vLLM's own is 600 s
        assert patience is None or 600 < int(patience) <= budget
        assert {"memory"} <= set(container["resources"]["limits"])
        assert "cpu" not in container["resources"]["limits"]
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        assert mounted == {volume["name"] for volume in spec["volumes"]}
    replicas = {d["metadata"]["name"]: d["spec"]["replicas"] for d in by_kind["Deployment"]}
    for scaler in by_kind.get("ScaledObject", []):
        spec = scaler["spec"]
        assert spec["minReplicaCount"] == replicas[spec["scaleTargetRef"]["name"]]
        assert spec["maxReplicaCount"] > spec["minReplicaCount"]


@needs_chart
@pytest.mark.parametrize("name", FITTING)
def test_helm_lints_it(name: str, real_chart: Path) -> None:
    problems = lint_problems(real_chart, values_text(name))
    lines = [line for problem in problems for line in problem.splitlines() if line.strip()]
    assert [line for line in lines if "- at '" in line or "unable to" in line] == []


def test_the_router_finds_its_own_engines_only() -> None:
    labels = yaml.safe_load(values_text("contract-review"))["servingEngineSpec"]["labels"]
    assert labels == {
        "environment": None,
        "release": "contract-review",
    }  # null takes a default away


@needs_chart
def test_a_default_label_is_taken_away(real_chart: Path) -> None:
    objects = rendered(real_chart, values_text(EVERY_SETTING), release=RELEASE)
    (router,) = (
        one for one in objects if one["metadata"]["name"] == f"{RELEASE}-deployment-router"
    )
    args = router["spec"]["template"]["spec"]["containers"][0]["args"]
    assert args[args.index("--k8s-label-selector") + 1] == "release=workload"
    pods = engine_pods(values_text(EVERY_SETTING), chart=real_chart, release=RELEASE)
    assert {pod["metadata"]["labels"]["environment"] for pod in pods} == {"production"}


def test_an_nginx_ingress_lets_long_prompts_in() -> None:
    text = values_text(
        "contract-review", ingress_host="llm.example.com", ingress_class_name="nginx"
    )
    ingress = yaml.safe_load(text)["routerSpec"]["ingress"]
    assert ingress["annotations"]["nginx.ingress.kubernetes.io/proxy-body-size"] == "64m"


def test_replicas_call_for_session_routing() -> None:
    def router(name: str, **environment: Any) -> dict[str, Any]:
        return yaml.safe_load(values_text(name, **environment))["routerSpec"]

    assert router(EVERY_SETTING)["routingLogic"] == "session"
    assert router(EVERY_SETTING)["sessionKey"] == "x-session-id"
    assert router("coding-agents")["routingLogic"] == "roundrobin"  # one replica, no GPU spare
    assert router("coding-agents", max_replicas=2)["routingLogic"] == "session"
    assert router("coding-agents")["tag"] == "v0.1.12"


def test_where_weights_are_kept() -> None:
    def of(name: str, **environment: Any) -> dict[str, Any]:
        return specs(values_text(name, **environment))[0]

    # 894.36 GiB of weights x 1.2 + 10 GiB = 1083.2 GiB, in tens.
    one = of("coding-agents")
    assert (one["pvcStorage"], one["pvcAccessMode"]) == ("1090Gi", ["ReadWriteOnce"])
    assert "HF_HUB_CACHE" not in [e["name"] for e in one["env"]]
    # Several replicas and a volume for one node: each pod has its own.
    several = of("coding-agents", max_replicas=2)
    assert "pvcStorage" not in several
    (cache_volume,) = several["extraVolumes"]
    claim = cache_volume["ephemeral"]["volumeClaimTemplate"]["spec"]
    assert claim["resources"]["requests"]["storage"] == "1090Gi"
    assert {"name": "HF_HUB_CACHE", "value": "/data/hub"} in several["env"]
    assert "pvcStorage" in of("coding-agents", max_replicas=2, storage_access_mode="ReadWriteMany")
    (node,) = of("coding-agents", model_cache=ModelCache.EPHEMERAL)["extraVolumes"]
    assert node == {"name": "cache", "emptyDir": {}}


def test_rollout() -> None:
    def surge(name: str, **environment: Any) -> int:
        values = yaml.safe_load(values_text(name, **environment))
        return values["servingEngineSpec"]["strategy"]["rollingUpdate"]["maxSurge"]

    assert surge("coding-agents") == 0  # all 8 GPUs are planned
    # every-setting has 8 GPUs, 3 or fewer of them planned: room for a pod more of each of both.
    assert surge(EVERY_SETTING) == 1
    assert (
        surge("contract-review", autoscaler=Autoscaler.NONE) == 0
    )  # a volume that one node mounts
    assert (
        surge("contract-review", autoscaler=Autoscaler.NONE, model_cache=ModelCache.EPHEMERAL) == 1
    )


def render_changed(name: str, *, model: str | None = None, **values: Any) -> str:
    """The values of a plan whose first instance has other arguments."""
    kept = report(name).plan
    first, *rest = kept.deployment.instances
    changed = with_instances(kept, with_args(first, model=model, **values), *rest)
    (file,) = render(changed, report(name).engine)
    return file.text


def test_integers_that_helm_would_print_as_floats_are_words() -> None:
    config = specs(render_changed("coding-agents", max_model_len=1_048_576))[0]["vllmConfig"]
    assert "maxModelLen" not in config
    words = config["extraArgs"]
    assert words[words.index("--max-model-len") + 1] == "1048576"
    config = specs(render_changed("coding-agents", max_model_len=999_999))[0]["vllmConfig"]
    assert config["maxModelLen"] == 999_999


@pytest.mark.parametrize(("runner", "expected"), [("pooling", False), (None, True)])
def test_prefix_caching_is_always_stated(runner: str | None, expected: bool) -> None:
    text = render_changed("interactive-chat", enable_prefix_caching=None, runner=runner)
    assert specs(text)[0]["vllmConfig"]["enablePrefixCaching"] is expected


def test_shared_memory_without_tensor_parallelism() -> None:
    """The chart mounts it for ``tensorParallelSize`` only: other GPUs that talk get a volume."""
    text = render_changed("batch-summarisation", tensor_parallel_size=None, data_parallel_size=2)
    spec = specs(text)[0]
    assert "shmSize" not in spec
    volumes = {volume["name"]: volume for volume in spec["extraVolumes"]}
    assert volumes["shm"]["emptyDir"] == {"medium": "Memory", "sizeLimit": "2Gi"}
    assert specs(values_text("batch-summarisation"))[0]["shmSize"] == "2Gi"


def test_a_model_folder_comes_from_its_claim() -> None:
    kept = report("interactive-chat").plan
    place = Environment(model_claim="weights")
    (first,) = kept.deployment.instances
    changed = with_instances(kept, with_args(first, model="/models/llama"), environment=place)
    (file,) = render(changed, report("interactive-chat").engine)
    (spec,) = specs(file.text)
    claim = {"claimName": "weights", "readOnly": True}
    assert {"name": "model", "persistentVolumeClaim": claim} in spec["extraVolumes"]
    assert {"name": "HF_HUB_OFFLINE", "value": "1"} in spec["env"]
    assert "hf_token" not in spec
    assert stack_values_problems({"servingEngineSpec": {"modelSpec": [spec | {"keda": {}}]}}) == []


@pytest.mark.parametrize(
    ("environment", "what"),
    [
        ({"gpu_allocation": GpuAllocation.DRA}, "no key for resource claims"),
        ({"hf_token_secret": "12345e67"}, "12345e67 would not be read as text"),
        ({"api_key_key": "yes"}, "yes would not be read as text"),
        ({"runtime_class_name": "0o17"}, "0o17 would not be read as text"),
    ],
)
def test_what_the_chart_cannot_carry_is_refused(environment: dict[str, Any], what: str) -> None:
    with pytest.raises(OutputError, match=what):
        values_text("contract-review", **environment)


def test_replicas_over_several_nodes_are_refused() -> None:
    with pytest.raises(OutputError, match="spans 2 nodes") as refused:
        values_text(SPANNING)
    assert "leaderworkerset" in refused.value.fix


@pytest.mark.parametrize("instance_name", ["yes", "1e3", "Long Docs!", "x" * 60, "-", "{{ x }}"])
def test_names_fit_and_stay_text(instance_name: str) -> None:
    """63 characters for <release>-<name>-engine-service: 63 - 20 - 1 - 15 = 27 for the name."""
    kept = report("interactive-chat").plan
    (first,) = kept.deployment.instances
    named = dataclasses.replace(first, name=instance_name)
    # Figures are looked up by the instance's name.
    figures = tuple(
        dataclasses.replace(f, id=f.id.replace(f"{first.name}.", f"{instance_name}.", 1))
        for f in kept.figures
    )
    changed = with_instances(kept, named, figures=figures)
    (file,) = render(changed, report("interactive-chat").engine)
    name = specs(file.text)[0]["name"]
    assert re.fullmatch(r"[a-z][a-z0-9-]{0,25}[a-z0-9]", name)
    assert len(f"{RELEASE}-{name}-engine-service") <= 63
    assert yaml.safe_load(name) == name


HOSTILE = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=30
) | st.sampled_from(
    [
        "$(POD_IP)", "$$(A)", "{{ .Release.Name }}", '{{- fail "x" }}', "12345e67", "yes", "null",
        "a: b", "- x", "'\"`", "a\nkey: 1", "\t", "# x", "1e3", "é\u2028", "\x7f", "|", "%d", "\\",
    ]
)  # fmt: skip


@settings(
    max_examples=15,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(model=HOSTILE, names=st.lists(HOSTILE, min_size=1, max_size=3), text=HOSTILE)
def test_hostile_text_stays_text(chart: Path, model: str, names: list[str], text: str) -> None:
    model = f"m{model}"  # not a flag and not a folder
    names = [f"n{name}" for name in names]
    values = {
        "served_model_name": names,
        "hf_overrides": {text: [text]},
        "chat_template": f"t{text}",
    }
    rendered_values = render_changed("interactive-chat", model=model, **values)
    assert values_problems(rendered_values) == []
    (spec,) = specs(rendered_values)
    kept = specs(values_text("interactive-chat"))[0]
    assert set(spec) == set(kept)
    assert set(spec["vllmConfig"]) == set(kept["vllmConfig"])
    (pod,) = engine_pods(rendered_values, chart=chart)
    command = [kubernetes(word) for word in pod["spec"]["containers"][0]["command"]]
    read = parse_serve_command(
        [(word, PLACE) for word in command], report("contract-review").engine
    )
    assert read.model == model
    for dest, value in values.items():
        assert read.engine_args.get(dest) == value
