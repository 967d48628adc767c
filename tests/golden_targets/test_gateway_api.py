"""Target gateway-api: the kept bytes, the rules of its HTTPRoute, and what it is refused for."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from golden_plans import NAMES, report
from read_back import KEPT, assert_as_kept, documents

from vllm_advisor.errors import OutputError
from vllm_advisor.render.gateway_api import MODEL_HEADER, render
from vllm_advisor.render.names import object_name


def route(name: str, *words: str) -> dict[str, Any]:
    of = report(name, *words)
    found = {a.path: a.text for a in render(of.plan, of.engine)}
    (made,) = documents(found["gateway-api/httproute.yaml"])
    kept: dict[str, Any] = made
    return kept


def asked(rules: list[dict[str, Any]], **headers: str) -> str:
    """The Service that takes a request: of the rules with most matching headers the first."""
    best: tuple[int, str] = (-1, "")
    for rule in rules:
        for match in rule["matches"]:
            wanted = match.get("headers", [])
            if all(headers.get(h["name"]) == h["value"] for h in wanted) and len(wanted) > best[0]:
                best = (len(wanted), rule["backendRefs"][0]["name"])
    return best[1]


@pytest.mark.parametrize("name", KEPT)
def test_files_are_as_kept(name: str, tmp_path: Path) -> None:
    assert_as_kept("gateway-api", name, name, tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_every_route_reaches_its_instance(name: str) -> None:
    plan = report(name).plan
    assert plan.routing is not None
    services = {i.name: object_name(plan, i) for i in plan.deployment.instances}
    rules = route(name)["spec"]["rules"]
    for each in plan.routing.routes:
        for header in (plan.routing.header, MODEL_HEADER):
            assert asked(rules, **{header: each.name}) == services[each.instance]
    first = plan.routing.route(plan.routing.by_length[0])
    assert asked(rules) == services[first.instance]
    assert asked(rules, **{plan.routing.header: "unheard-of"}) == services[first.instance]
    assert {m["path"]["value"] for rule in rules for m in rule["matches"]} == {"/v1"}


def test_the_answer_says_who_gave_it() -> None:
    for rule in route("contract-review")["spec"]["rules"]:
        (change,) = rule["filters"]
        (header,) = change["responseHeaderModifier"]["set"]
        assert header["name"] == "x-vllm-instance"
        assert rule["backendRefs"][0]["name"] == f"contract-review-{header['value']}"


def test_the_gateway_is_let_in_and_is_the_only_way_in() -> None:
    words = ("gateway_namespace=gateways", "ingress_host=llm.example.com", "namespace=llm")
    of = report("contract-review", *words)
    made = [d for a in render(of.plan, of.engine) for d in documents(a.text)]
    kinds = {d["kind"] for d in made}
    assert "Ingress" not in kinds
    (policy, *_) = (d for d in made if d["kind"] == "NetworkPolicy")
    assert "gateways" in str(policy["spec"]["ingress"])
    assert route("contract-review", *words)["spec"]["hostnames"] == ["llm.example.com"]


def test_no_gateway_and_no_policy_are_refused() -> None:
    with pytest.raises(OutputError, match="belongs to a Gateway"):
        route("contract-review", "gateway_name=null")
    of = report("contract-review")
    with pytest.raises(OutputError, match="no routing policy"):
        render(dataclasses.replace(of.plan, routing=None), of.engine)
