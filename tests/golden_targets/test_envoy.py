"""Target envoy: the kept bytes, and every request where the policy sends it."""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from golden_plans import TESTS, assert_kept, report
from hypothesis import given
from hypothesis import strategies as st
from judges.envoy import (
    SIZE_HEADER,
    clusters_of,
    envoy_problems,
    instances_of,
    manager_of,
    route_for,
    routes_of,
)
from other_plans import with_args, with_instances
from routed import CONTRACTS, with_policy

from vllm_advisor.api.planning import PlanReport
from vllm_advisor.errors import OutputError
from vllm_advisor.render.backends import backends
from vllm_advisor.render.byte_rules import ladders
from vllm_advisor.render.envoy import render
from vllm_advisor.types.routing import RoutingPolicy

URLS = (
    'instance_urls={chat: ["http://10.0.0.5:8000", "http://10.0.0.6:8000"], '
    'long-docs: ["http://gpu7.example.com:8001"]}'
)
REPLICAS = (
    URLS,
    "router_host=10.0.0.1",
    "router_port=8080",
)
KUBERNETES = ("router_place=kubernetes", "namespace=llm")
CHAT, RAG, LONG = CONTRACTS.routes


def made(*words: str, policy: RoutingPolicy = CONTRACTS) -> PlanReport:
    return with_policy(report("contract-review", *words), policy)


def config_of(of: PlanReport) -> dict[str, Any]:
    (artifact,) = render(of.plan, of.engine)
    found: dict[str, Any] = yaml.load(artifact.text, yaml.CSafeLoader)
    return found


@pytest.mark.parametrize(
    ("kept", "words"),
    [
        ("contract-review", ()),
        ("contract-review-kubernetes", KUBERNETES),
        ("contract-review-replicas", REPLICAS),
    ],
)
def test_files_are_as_kept(kept: str, words: tuple[str, ...], tmp_path: Path) -> None:
    (artifact,) = made(*words).target_files(("envoy",))
    assert artifact.path == "envoy/envoy.yaml"
    below = dataclasses.replace(artifact, path="envoy.yaml")
    assert_kept((below,), TESTS / "golden_targets" / "envoy" / kept, tmp_path)
    assert envoy_problems(artifact.text) == []


@cache
def _config_for(*words: str) -> dict[str, Any]:
    return config_of(made(*words))


@pytest.mark.parametrize("words", [(), KUBERNETES, REPLICAS])
@given(size=st.integers(0, 10**7), workload=st.sampled_from(["", "chat", "rag", "long-docs", "x"]))
def test_requests_go_where_the_policy_sends_them(
    words: tuple[str, ...], size: int, workload: str
) -> None:
    of = made(*words)
    config = _config_for(*words)
    first, *others = ladders(CONTRACTS)
    step = next((each for each in others if workload in each.routes), first).step(size)
    headers = {SIZE_HEADER: str(size), **({"x-workload": workload} if workload else {})}
    cluster = clusters_of(config)[route_for(config, headers)["route"]["cluster"]]
    servers = backends(of.plan, of.engine)
    assert instances_of(cluster) == [
        (name, [(server.host, server.port) for server in servers[name]]) for name in step.instances
    ]


def test_names_are_looked_up_and_addresses_are_not() -> None:
    types = {name: c["type"] for name, c in clusters_of(config_of(made(*REPLICAS))).items()}
    assert types == {"chat+long-docs>long-docs": "STRICT_DNS", "long-docs": "STRICT_DNS"}
    assert {c["type"] for c in clusters_of(config_of(made())).values()} == {"STATIC"}


def test_a_refusal_is_asked_again_where_the_stand_in_reads_more() -> None:
    for policy, again in (
        (CONTRACTS, True),
        (with_chat(on_outage=None), False),
        (with_chat(on_overflow=None), False),
    ):
        of = made(policy=policy)
        config = config_of(of)
        retry = route_for(config, {"x-workload": "chat"})["route"].get("retry_policy", {})
        assert (retry.get("retriable_status_codes") == [400]) == again
        (artifact,) = render(of.plan, of.engine)
        assert ("is not asked again" in artifact.text) == (policy.routes[0].on_outage is None)


def with_chat(**changes: Any) -> RoutingPolicy:
    chat = dataclasses.replace(CHAT, **changes)
    return dataclasses.replace(CONTRACTS, routes=(chat, RAG, LONG))


def test_the_limit_of_a_body_is_the_policys() -> None:
    config = config_of(made())
    (listener,) = config["static_resources"]["listeners"]
    assert listener["per_connection_buffer_limit_bytes"] == 4_194_304
    buffer, lua, last = manager_of(config)["http_filters"]
    assert buffer["typed_config"]["max_request_bytes"] == 4_194_304
    assert SIZE_HEADER in lua["typed_config"]["default_source_code"]["inline_string"]
    assert last["name"] == "envoy.filters.http.router"


def test_the_admin_interface_has_a_port_of_its_own() -> None:
    words = ("instance_urls={chat: [http://10.0.0.5:4001]}", "router_port=4000")
    assert config_of(made(*words))["admin"]["address"]["socket_address"]["port_value"] == 4002
    last = config_of(made("router_port=65535"))["admin"]["address"]["socket_address"]
    assert last["port_value"] == 1


def test_what_is_not_v1_is_answered_here() -> None:
    own = [route for route in routes_of(config_of(made())) if "route" not in route]
    assert [route["match"] for route in own] == [{"path": "/health"}]


@pytest.mark.parametrize(
    ("words", "changes", "what", "where"),
    [
        ((), {}, "no routing policy", "plan.routing"),
        (("router_host=gpu1.example.com",), {"routing": CONTRACTS}, "is a name", "environment.router_host"),
        (
            ("instance_urls={chat: [https://a.example.com]}",),
            {"routing": CONTRACTS},
            "reached by https",
            "environment.instance_urls.chat",
        ),
        (
            (),
            {"routing": dataclasses.replace(CONTRACTS, header="x workload")},
            "is no header",
            "routing.header",
        ),
        ((), {"routing": with_chat(instance="chat\n")}, "cannot stand in", "routing.chat"),
        ((), {"routing": with_chat(instance="other")}, "is no instance", "routing.chat"),
    ],
)  # fmt: skip
def test_what_cannot_be_written_is_told(
    words: tuple[str, ...], changes: dict[str, Any], what: str, where: str
) -> None:
    of = report("contract-review", *words)
    plan = dataclasses.replace(of.plan, **{"routing": None, **changes})
    with pytest.raises(OutputError) as caught:
        render(plan, of.engine)
    assert what in caught.value.what
    assert caught.value.where == where
    assert caught.value.fix


def test_instances_without_a_name_in_common_are_refused() -> None:
    of = made()
    named = (with_args(i, served_model_name=[i.name]) for i in of.plan.deployment.instances)
    with pytest.raises(OutputError, match="no served model name in common"):
        render(with_instances(of.plan, *named), of.engine)


@given(st.text(max_size=20))
def test_text_stays_in_its_comment(text: str) -> None:
    """The plan's name and the model's may be any text; they stand in comments alone."""
    of = made()
    model = f"org/{text}"
    named = (
        with_args(i, model=model, served_model_name=[model]) for i in of.plan.deployment.instances
    )
    plan = with_instances(of.plan, *named, name=f"n{text}")
    (artifact,) = render(plan, of.engine)
    assert yaml.load(artifact.text, yaml.CSafeLoader) == _config_for()
