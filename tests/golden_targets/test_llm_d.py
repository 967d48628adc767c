"""Target llm-d: the kept bytes, the plan read back, one pool over all servers, ranges by length.

``LLM_D_ROUTER_CHART=FOLDER`` (config/charts/llm-d-router-gateway of llm-d-router v0.10.0, its
library beside it) renders the chart itself with the values.
"""

from __future__ import annotations

import copy
import dataclasses
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from golden_plans import NAMES, SPANNING, report
from hypothesis import given, settings
from hypothesis import strategies as st
from judges.helm import rendered, values_problems
from judges.kubectl import kustomize_problems, yaml_problems
from judges.kubelet import expanded_words
from judges.llm_d import (
    RANGE,
    from_elsewhere,
    picker_problems,
    router_values_problems,
    takers,
    with_library,
)
from judges.schemas import schema_problems
from other_plans import args_of, with_args, with_instances
from read_back import KEPT, assert_as_kept, documents, engine_args, replicas_of

from vllm_advisor.api.planning import PlanReport
from vllm_advisor.api.writing import write_artifacts
from vllm_advisor.errors import OutputError
from vllm_advisor.parse.kubernetes_semantics import manifest_problems
from vllm_advisor.render.groups import LEADER_LABEL
from vllm_advisor.render.llm_d import picker_config, pool_name, render
from vllm_advisor.render.names import object_name
from vllm_advisor.render.pod import nodes_per_replica, port_of
from vllm_advisor.render.prompt_ranges import NO_END, prompt_ranges
from vllm_advisor.routing import Router
from vllm_advisor.types.engine import EngineArgs
from vllm_advisor.types.plan import Instance, Plan
from vllm_advisor.types.routing import RoutingPolicy

(INDEX,) = LEADER_LABEL
CONTROLLERS = ("Deployment", "StatefulSet", "LeaderWorkerSet")
LEADER = {"LWS_LEADER_ADDRESS": "leader.example"}
SEVERAL = [name for name in NAMES if len(report(name).plan.deployment.instances) > 1]
GATEWAY = (
    "namespace=llm",
    "gateway_namespace=gateways",
    "gateway_name=public",
    "gateway_provider=none",
    "ingress_host=llm.example.com",
)
VARIANTS = (
    (),
    GATEWAY,
    ("labels={team: search}", "gateway_name=null", "gpu_allocation=dra"),
    ("model_cache=ephemeral", "autoscaler=none", "monitoring=none"),
)
CHART = os.environ.get("LLM_D_ROUTER_CHART")


def files(plan: Plan, name: str = "contract-review") -> dict[str, str]:
    return {Path(a.path).name: a.text for a in render(plan, report(name).engine)}


def split(written: dict[str, str]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The objects that kubectl gets, and the values that Helm gets."""
    found = [
        document
        for file, text in written.items()
        if file not in ("kustomization.yaml", "router-values.yaml")
        for document in documents(text)
    ]
    return found, yaml.safe_load(written["router-values.yaml"])


def made(of: PlanReport, name: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    return split(files(of.plan, name))


def templates(found: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Templates of the pods that serve, by the names of their controllers.

    The label by which LeaderWorkerSet numbers the pods of a group is added as its controller does.
    """
    made = {}
    for controller in (o for o in found if o["kind"] in CONTROLLERS):
        spec = controller["spec"]
        if controller["kind"] == "LeaderWorkerSet":
            spec = copy.deepcopy(spec["leaderWorkerTemplate"])
            spec["template"] = spec.get("leaderTemplate", spec["workerTemplate"])
            spec["template"]["metadata"]["labels"] |= LEADER_LABEL
        made[controller["metadata"]["name"]] = spec["template"]
    return made


def started_with(container: dict[str, Any], of: PlanReport) -> EngineArgs:
    """The arguments of a server, less those that tell the ranks of a group where its leader is."""
    words = expanded_words(container["args"], LEADER)
    if words[-2:] == ["--master-addr", "leader.example"]:
        words = words[:-2]
    return engine_args(words, of.engine)


def planned(instance: Instance, port: int) -> dict[str, Any]:
    """What the plan says, the port being the pool's."""
    return {**instance.engine_args.as_dict(), "port": port}


@pytest.mark.parametrize("name", KEPT)
def test_files_are_as_kept(name: str, tmp_path: Path) -> None:
    assert_as_kept("llm-d", name, name, tmp_path)


def test_files_behind_another_gateway_are_as_kept(tmp_path: Path) -> None:
    words = (*GATEWAY, "model_cache=ephemeral", "autoscaler=none")
    assert_as_kept("llm-d", "yarn", "yarn-gateway", tmp_path / "gateway", *words)
    assert_as_kept("llm-d", SPANNING, SPANNING, tmp_path / "nodes")


@pytest.mark.parametrize("words", VARIANTS, ids=lambda w: " ".join(w) or "defaults")
@pytest.mark.parametrize("name", NAMES)
def test_the_plan_reads_back(name: str, words: tuple[str, ...]) -> None:
    of = report(name, *words)
    found, values = made(of, name)
    pods = templates(found)
    instances = of.plan.deployment.instances
    port = port_of(instances[0], of.engine)
    assert len(pods) == len(instances)
    assert values["router"]["modelServers"]["targetPorts"] == [{"number": port}]
    for instance in instances:
        own = object_name(of.plan, instance)
        (container,) = pods[own]["spec"]["containers"]
        args = started_with(container, of)
        assert args.model == instance.engine_args.model
        assert args.as_dict() == planned(instance, port)
        assert container["ports"] == [{"name": "http", "containerPort": port, "protocol": "TCP"}]
        (controller,) = (
            o for o in found if o["kind"] in CONTROLLERS and o["metadata"]["name"] == own
        )
        assert replicas_of(controller, found) == instance.replicas
        if "gpu_allocation=dra" not in words:
            nodes = nodes_per_replica(of.plan, instance)
            gpus = container["resources"]["limits"]["nvidia.com/gpu"]
            assert int(gpus) * nodes == instance.gpus


def test_only_a_port_that_the_pool_cannot_have_differs_from_the_plan() -> None:
    for name in NAMES:
        own, *others = (i.engine_args.get("port") for i in report(name).plan.deployment.instances)
        texts = files(report(name).plan, name)
        said = sum(
            "in the plan, which lets servers share a host"
            in " ".join(line.strip(" #") for line in text.splitlines())
            for text in texts.values()
        )
        assert said == sum(port != own for port in others)


@pytest.mark.parametrize("words", VARIANTS, ids=lambda w: " ".join(w) or "defaults")
@pytest.mark.parametrize("name", NAMES)
def test_a_cluster_and_the_router_would_accept_them(name: str, words: tuple[str, ...]) -> None:
    of = report(name, *words)
    found, values = made(of, name)
    assert schema_problems(found) == []
    everything = [*found, *from_elsewhere(found, values)]
    assert [str(p) for p in manifest_problems(everything)] == []
    assert router_values_problems(values) == []
    assert values_problems(files(of.plan, name)["router-values.yaml"]) == []


@pytest.mark.parametrize("words", VARIANTS[:2], ids=lambda w: " ".join(w) or "defaults")
@pytest.mark.parametrize("name", KEPT)
def test_kubectl_reads_and_builds_what_was_meant(
    name: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    write_artifacts(report(name, *words).artifacts(("llm-d",)), tmp_path / "out", overwrite=False)
    for path in sorted((tmp_path / "out" / "llm-d").glob("*.yaml")):
        if path.name not in ("kustomization.yaml", "router-values.yaml"):
            assert yaml_problems(path.read_text()) == []
    beside = frozenset({"router-values.yaml"})
    assert kustomize_problems(tmp_path / "out" / "llm-d", beside=beside) == []


@pytest.mark.parametrize("name", NAMES)
def test_the_pool_is_every_pod_of_the_plan(name: str) -> None:
    of = report(name)
    found, values = made(of, name)
    wanted = values["router"]["modelServers"]["matchLabels"]
    assert wanted["llm-d.ai/guide"] == of.plan.name
    assert (INDEX in wanted) == (name == SPANNING)
    for template in templates(found).values():
        assert wanted.items() <= template["metadata"]["labels"].items()
    (route,) = (o for o in found if o["kind"] == "HTTPRoute")
    (rule,) = route["spec"]["rules"]
    assert rule["backendRefs"][0]["name"] == pool_name(of.plan)
    assert [m["path"]["value"] for m in rule["matches"]] == ["/v1"], "all else asks for no key"


def test_ranges_by_hand() -> None:
    """contract-review: 7,168 - 1,000 tokens of answer = 6,168. yarn: 5,120 - 1,000 = 4,120.

    several-nodes: 7,000, the longest chat; more would not fit into the KV cache at once.
    """
    found = {name: prompt_ranges(report(name).plan) for name in SEVERAL}
    assert {name: [r.label for r in ranges.values()] for name, ranges in found.items()} == {
        "contract-review": ["0-6168", f"6169-{NO_END}"],
        "several-nodes": ["0-7000", f"7001-{NO_END}"],
        "yarn": ["0-4120", f"4121-{NO_END}"],
    }
    assert found["contract-review"]["chat"].longer == (("contract-review", 2000),)
    assert found["yarn"]["chat"].longer == ()


@pytest.mark.parametrize("name", SEVERAL)
def test_every_class_gets_to_its_instance(name: str) -> None:
    """Its longest prompt, if the picker counts it right; retrieval makes its own of the document."""
    of = report(name).plan
    pods = list(templates(made(report(name), name)[0]).values())
    own = {i.name: object_name(of, i) for i in of.deployment.instances}
    prompts = {each["name"]: each["prompt_tokens"][-1] for each in of.inputs["classes"]}
    for route in of.routes:
        last = route.fallback if route.retrieve else route.instance
        assert takers(pods, prompts[route.request_class]) == [own[last or route.instance]]
    for tokens in (0, 1, 6168, 6169, 10**9):
        assert len(takers(pods, tokens)) == 1


@given(limits=st.lists(st.integers(1, 2_000_000), min_size=1, max_size=5, unique=True).map(sorted),
       tokens=st.integers(0, 3_000_000))  # fmt: skip
def test_no_prompt_is_left_out_and_none_has_two_ranges(limits: list[int], tokens: int) -> None:
    names = [f"i{n}" for n in range(len(limits))]
    of = report("contract-review").plan
    long = of.routing.route("long-docs")
    routes = tuple(
        dataclasses.replace(
            long,
            name=name,
            instance=name,
            max_prompt_tokens=limit,
            max_model_len=limit + long.reserved_output_tokens,
        )
        for name, limit in zip(names, limits, strict=True)
    )
    policy = RoutingPolicy(
        plan="p", model="m", routes=routes, by_length=tuple(names), byte_count=of.routing.byte_count
    )
    instances = (Instance(name=n, role="general", engine_args=args_of("m")) for n in names)
    ranges = prompt_ranges(with_instances(of, *instances, routing=policy))
    if len(limits) == 1:
        assert not ranges
        return
    (taking,) = (r for r in ranges.values() if r.start <= tokens <= r.end)
    assert taking.instance == (Router(policy).decide(prompt_tokens=tokens).instance or names[-1]), (
        "what nobody takes is the last one's to refuse"
    )


def test_one_instance_has_no_range_and_no_plugin_for_it() -> None:
    found, values = made(report("coding-agents"), "coding-agents")
    (template,) = templates(found).values()
    assert RANGE not in template["metadata"]["labels"]
    assert "context-length-aware" not in str(values)


@pytest.mark.parametrize("by_length", [True, False])
def test_prefixes_are_not_scored_where_nothing_keeps_them(by_length: bool) -> None:
    of = report("contract-review").plan
    off = (with_args(i, enable_prefix_caching=False) for i in of.deployment.instances)
    without = with_instances(of, *off)
    for plan, scored in ((of, True), (without, False)):
        config = picker_config(plan, by_length=by_length)
        assert picker_problems(config) == []
        assert ("prefix-cache-scorer" in str(config)) == scored


def test_the_gateway_is_let_in_and_the_only_way_in() -> None:
    found, values = made(report("contract-review", *GATEWAY), "contract-review")
    assert "Ingress" not in {o["kind"] for o in found}
    for policy in (o for o in found if o["kind"] == "NetworkPolicy"):
        (rule,) = policy["spec"]["ingress"]
        assert {"podSelector": {}} in rule["from"], "the picker is a pod of the same namespace"
        spaces = [
            peer["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"]
            for peer in rule["from"]
            if "namespaceSelector" in peer
        ]
        assert spaces == ["gateways", "monitoring"]
    (route,) = (o for o in found if o["kind"] == "HTTPRoute")
    assert route["metadata"]["namespace"] == "llm"
    assert route["spec"]["hostnames"] == ["llm.example.com"]
    assert route["spec"]["parentRefs"] == [
        {
            "group": "gateway.networking.k8s.io",
            "kind": "Gateway",
            "name": "public",
            "namespace": "gateways",
        }
    ]
    assert values["provider"] == {"name": "none"}


def test_a_route_of_ones_own() -> None:
    written = files(report("contract-review", "gateway_name=null").plan)
    assert "HTTPRoute" not in {o["kind"] for o in split(written)[0]}
    assert "httproute.yaml" not in written["kustomization.yaml"]


def test_clients_are_told_of_the_gateway_and_of_the_name_that_all_answer_to() -> None:
    text = files(report("contract-review").plan)["kustomization.yaml"]
    one = "to the Gateway inference-gateway, path /v1, model meta-llama/Llama-3.1-8B-Instruct"
    assert f"#   chat: {one}\n" in text
    assert f"#   clause-lookup: passages found by retrieval {one}\n" in text
    assert "http://" not in text


def test_workers_of_a_group_are_not_in_the_pool() -> None:
    """They serve nothing, and have the same labels but for their number."""
    found, values = made(report(SPANNING), SPANNING)
    wanted = values["router"]["modelServers"]["matchLabels"]
    assert wanted.items() >= LEADER_LABEL.items()
    (group,) = (o for o in found if o["kind"] == "LeaderWorkerSet")
    worker = group["spec"]["leaderWorkerTemplate"]["workerTemplate"]
    assert not wanted.items() <= (worker["metadata"]["labels"] | {INDEX: "1"}).items()


def test_one_group_makes_groups_of_all() -> None:
    """One selector has to find the servers of each instance, and no workers."""
    of = report("contract-review").plan
    first, second = of.deployment.instances
    spanning = dataclasses.replace(second, gpus=2 * of.node.gpu_count)
    of = with_instances(of, first, spanning)
    found, values = split(files(of))
    kinds = [o["kind"] for o in found if o["kind"] in CONTROLLERS]
    assert kinds == ["LeaderWorkerSet", "LeaderWorkerSet"]
    assert values["router"]["modelServers"]["matchLabels"].items() >= LEADER_LABEL.items()
    assert schema_problems(found) == []


def test_instances_without_a_name_in_common_are_refused() -> None:
    of = report("contract-review").plan
    named = (with_args(i, served_model_name=[i.name]) for i in of.deployment.instances)
    with pytest.raises(OutputError, match="no served model name in common"):
        files(with_instances(of, *named))


def test_a_plan_without_a_policy_is_refused() -> None:
    with pytest.raises(OutputError, match="no routing policy"):
        prompt_ranges(dataclasses.replace(report("contract-review").plan, routing=None))


PIECES = [
    "a", "b", "-", "é", "🎉", "12345e67", "yes", "null", " ", "'", '"', "`", "\\", "$", "$(HOME)",
    "${HOME}", "$$", "{{", "}}", "{{ .Release.Name }}", "{%", "#", ": ", "- ", "|", "&", "*", "!",
    "%", "@", "\n", "\n---\n", "\t", "\u2028", "\x85", "0o17", "1e3",
]  # fmt: skip
HOSTILE = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


@given(served=st.lists(HOSTILE, min_size=1, max_size=3), template=HOSTILE, model=HOSTILE,
       plan_name=HOSTILE, class_name=HOSTILE)  # fmt: skip
@settings(max_examples=30)
def test_hostile_values_change_nothing_else(
    served: list[str], template: str, model: str, plan_name: str, class_name: str
) -> None:
    of = report("contract-review").plan
    usual = made(report("contract-review"), "contract-review")
    names = [f"a{name}" for name in served]
    instances = (
        with_args(
            i,
            model=f"o/{model}",
            served_model_name=[*names, f"{i.name}{served[0]}"],
            chat_template=f"a{template}",
        )
        for i in of.deployment.instances
    )
    renamed = {"contract-review": class_name, "chat": "chat", "clause-lookup": "clause-lookup"}
    of = with_instances(
        of,
        *instances,
        name=f"n{plan_name}",
        model=f"o/{model}",
        inputs={
            "classes": [{**c, "name": renamed[c["name"]]} for c in of.inputs["classes"]]
            + of.inputs["classes"]
        },
    )
    found, values = split(files(of))
    assert [o["kind"] for o in found] == [o["kind"] for o in usual[0]]
    assert schema_problems(found, versions=["1.37"]) == []
    assert router_values_problems(values) == []
    epp = usual[1]["router"]["epp"]
    assert values["router"]["epp"] == epp
    pods = templates(found)
    for instance in of.deployment.instances:
        (container,) = pods[object_name(of, instance)]["spec"]["containers"]
        args = engine_args(expanded_words(container["args"]), report("contract-review").engine)
        assert args.model == instance.engine_args.model
        assert args.as_dict() == planned(instance, 8000)


@pytest.mark.skipif(not CHART, reason="LLM_D_ROUTER_CHART names no chart")
@pytest.mark.parametrize("words", [*VARIANTS, ("gateway_provider=none",)])
@pytest.mark.parametrize("name", NAMES)
def test_the_chart_makes_the_pool(name: str, words: tuple[str, ...], tmp_path: Path) -> None:
    of = report(name, *words)
    text = files(of.plan, name)["router-values.yaml"]
    found, values = made(of, name)
    chart = with_library(Path(str(CHART)), tmp_path)
    objects = rendered(chart, text, release=pool_name(of.plan), namespace="llm")
    (pool,) = (o for o in objects if o["kind"] == "InferencePool")
    assert [o for o in objects if o["kind"] == "HTTPRoute"] == [], "ours lets /v1 through only"
    known = [o for o in objects if o["kind"] != "DestinationRule"]
    assert len(objects) - len(known) == (values["provider"]["name"] == "istio")
    assert schema_problems(known) == []
    servers = values["router"]["modelServers"]
    assert pool["spec"]["selector"]["matchLabels"] == servers["matchLabels"]
    assert pool["spec"]["targetPorts"] == servers["targetPorts"]
    for assumed in from_elsewhere(found, values):
        if assumed["kind"] == "InferencePool":
            assert assumed["metadata"]["name"] == pool["metadata"]["name"]
            assert assumed["spec"].items() <= pool["spec"].items()
    (config,) = (o for o in objects if o["kind"] == "ConfigMap")
    (picker,) = (o for o in objects if o["kind"] == "Deployment")
    (container,) = picker["spec"]["template"]["spec"]["containers"]
    path = container["args"][container["args"].index("--config-file") + 1]
    assert picker_problems(yaml.safe_load(config["data"][Path(path).name])) == []
    assert config["data"][Path(path).name] == values["router"]["epp"]["pluginsCustomConfig"][
        Path(path).name
    ]  # fmt: skip
