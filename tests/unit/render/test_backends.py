"""Where routers find servers: held against what the targets really write."""

from __future__ import annotations

import dataclasses

import pytest
import yaml
from golden_plans import NAMES, SPANNING, report
from hypothesis import given
from hypothesis import strategies as st

from vllm_advisor.errors import OutputError
from vllm_advisor.knowledge.environments import make_environment, read_settings
from vllm_advisor.knowledge.plan_reader import read_plan
from vllm_advisor.render.backends import Backend, backends, is_host, parse_url
from vllm_advisor.render.placement import place_replicas

SPREAD = [
    name
    for name in NAMES
    if any(r.node + r.nodes > 1 for r in place_replicas(report(name).plan, report(name).engine))
]
ONE_HOST = [name for name in NAMES if name not in SPREAD]


def found(name, *words):
    made = report(name, *words)
    return backends(made.plan, made.engine)


def test_there_are_plans_of_both_kinds():
    assert SPANNING in SPREAD
    assert {"contract-review", "rag-assistant"} <= set(ONE_HOST)


def test_on_the_host_by_hand():
    """vLLM's own port is 8000; the second instance's arguments say 8001."""
    assert {k: [b.url for b in v] for k, v in found("contract-review").items()} == {
        "chat": ["http://127.0.0.1:8000"],
        "long-docs": ["http://127.0.0.1:8001"],
    }


@pytest.mark.parametrize("name", ONE_HOST)
def test_on_the_host_every_replica_has_its_port(name):
    made = report(name)
    placed = place_replicas(made.plan, made.engine)
    ports = [backend.port for each in found(name).values() for backend in each]
    assert ports == [replica.port for replica in placed]
    assert len(set(ports)) == len(ports)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("space", [(), ("namespace=llm",)])
def test_in_kubernetes_every_instance_has_its_service(name, space):
    words = ("router_place=kubernetes", *space)
    services = {}
    for artifact in report(name, *words).artifacts(("kubernetes",)):
        if artifact.path.startswith("kubernetes/"):
            for document in yaml.safe_load_all(artifact.text):
                if document and document["kind"] == "Service":
                    meta = document["metadata"]
                    host = meta["name"] + (f".{meta['namespace']}.svc" if space else "")
                    services[host] = document["spec"]["ports"][0]["port"]
    hosts = [one for each in found(name, *words).values() for one in each]
    assert {one.host: one.port for one in hosts} == services
    assert len(hosts) == len(report(name).plan.deployment.instances)


@pytest.mark.parametrize("name", ONE_HOST)
def test_in_compose_every_replica_is_a_service(name):
    words = ("router_place=compose",)
    (text,) = (
        a.text
        for a in report(name, *words).artifacts(("compose",))
        if a.path.endswith("compose.yaml")
    )
    inside = {
        service: int(body["ports"][0].rpartition(":")[2])
        for service, body in yaml.safe_load(text)["services"].items()
    }
    hosts = [one for each in found(name, *words).values() for one in each]
    assert {one.host: one.port for one in hosts} == inside


@pytest.mark.parametrize("place", ["host", "compose"])
@pytest.mark.parametrize("name", SPREAD)
def test_on_other_nodes_nobody_knows_addresses(name, place):
    with pytest.raises(OutputError) as caught:
        found(name, f"router_place={place}")
    assert caught.value.where == "environment.instance_urls"
    assert "instance_urls=" in caught.value.fix


def test_given_ones_win_where_they_are_given():
    urls = 'instance_urls={long-docs: ["https://big.example.com", "http://[fd00::5]:9000"]}'
    made = found("contract-review", urls)
    assert made["chat"] == (Backend(host="127.0.0.1", port=8000),)
    assert [b.url for b in made["long-docs"]] == [
        "https://big.example.com:443",
        "http://[fd00::5]:9000",
    ]
    assert list(made) == ["chat", "long-docs"]


def test_all_given_ask_for_no_place():
    """One of their replicas takes two nodes: no rule says which address is the first's."""
    names = [i.name for i in report(SPANNING).plan.deployment.instances]
    urls = ", ".join(f"{name}: [http://10.0.0.5:8000]" for name in names)
    made = found(SPANNING, f"instance_urls={{{urls}}}")
    assert {k: [b.url for b in v] for k, v in made.items()} == {
        name: ["http://10.0.0.5:8000"] for name in names
    }


@pytest.mark.parametrize(
    ("urls", "what"),
    [
        ({"other": ("http://a:1",)}, "no instance of the plan"),
        ({"chat": ()}, "no URL for chat"),
        ({"chat": ("http://a:0",)}, "0 is no port"),
        ({"chat": ("http://a:65536",)}, "65536 is no port"),
        ({"chat": ("http://10.0.0.256:80",)}, "'10.0.0.256' is no host"),
        ({"chat": ("http://[::g]:80",)}, "is no URL"),
        ({"chat": ("http://[:::]:80",)}, "':::' is no host"),
        ({"chat": ("http://a-:80",)}, "'a-' is no host"),
        ({"chat": ("http://a/v1",)}, "is no URL"),
        ({"chat": ("http://u:p@a:80",)}, "is no URL"),
        ({"chat": ("http://a:80\n",)}, "is no URL"),
        ({"chat": ("http://a; return 200",)}, "is no URL"),
        ({"chat": ("unix:/tmp/x",)}, "is no URL"),
    ],
)
def test_what_is_no_url_is_refused(urls, what):
    made = report("contract-review")
    place = dataclasses.replace(made.plan.environment, instance_urls=urls)
    with pytest.raises(OutputError) as caught:
        backends(dataclasses.replace(made.plan, environment=place), made.engine)
    assert what in caught.value.what
    assert caught.value.where.startswith("environment.instance_urls")
    assert caught.value.fix


def test_the_routers_own_port_is_taken():
    with pytest.raises(OutputError, match="both listen on port 8001") as caught:
        found("contract-review", "router_port=8001")
    assert caught.value.where == "environment.router_port"
    assert found("contract-review", "router_port=8001", "router_place=compose")


def test_the_same_server_twice_is_one():
    urls = 'instance_urls={chat: ["http://a", "http://a:80"]}'
    assert [b.url for b in found("contract-review", urls)["chat"]] == ["http://a:80"]


@given(st.text(max_size=30) | st.from_regex(r"\Ahttps?://[a-z0-9.:\[\]-]{1,20}\Z"))
def test_a_url_that_is_taken_is_plain(text):
    try:
        made = parse_url(text)
    except ValueError:
        return
    assert parse_url(made.url) == made
    assert is_host(made.host)
    assert set(made.url) <= set("abcdefghijklmnopqrstuvwxyz0123456789.:-[]/")


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("router_place=compose", "compose"),
        ("router_host=127.0.0.1", "127.0.0.1"),
        ("router_host=::1", "::1"),
        ("router_host=gpu1.example.com", "gpu1.example.com"),
        ("router_port=80", 80),
        ("instance_urls={chat: [http://a:80]}", {"chat": ("http://a:80",)}),
    ],
)
def test_keys_of_a_router(word, value):
    assert make_environment(read_settings((word,))).given() == {word.partition("=")[0]: value}


def test_a_plan_file_keeps_them():
    made = report("contract-review", 'instance_urls={chat: ["http://a:1", "http://b:1"]}')
    again = read_plan(made.to_dict(), made.engine, file="plan.yaml")
    assert again.environment == made.plan.environment


def test_instances_of_a_plan_that_was_changed_by_hand():
    made = report("contract-review")
    first, second = made.plan.deployment.instances
    deployment = dataclasses.replace(
        made.plan.deployment, instances=(first, dataclasses.replace(second, replicas=3))
    )
    three = dataclasses.replace(made.plan, deployment=deployment)
    # 8000 is the other one's; the further replicas count up from their own.
    assert [b.port for b in backends(three, made.engine)["long-docs"]] == [8001, 8002, 8003]
