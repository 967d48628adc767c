"""What the product tells of routers that run: verify routes, and the example application."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from golden_plans import report
from running import MASTER_KEY, Router, servers, started

from vllm_advisor.api.verifying import verify_routes
from vllm_advisor.render.routing import render_policy
from vllm_advisor.routing import Router as Decider
from vllm_advisor.types.routing import RoutingPolicy

pytestmark = pytest.mark.routers
EXAMPLE = Path(__file__).parents[2] / "examples" / "rag_first"


def own_policy() -> RoutingPolicy:
    policy = report("contract-review").plan.routing
    assert policy is not None
    return policy


@pytest.fixture(scope="module", params=["envoy", "litellm", "nginx"])
def router(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Router]:
    folder = tmp_path_factory.mktemp(request.param)
    with started(request.param, own_policy(), servers(), folder) as running:
        yield running


@pytest.fixture
def routing_file(tmp_path: Path) -> Path:
    file = tmp_path / "routing.yaml"
    file.write_text(render_policy(own_policy()).text)
    return file


def test_verify_routes_finds_every_probe_where_the_plan_says(
    router: Router, routing_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY_OF_CLIENTS", MASTER_KEY)
    found = verify_routes(
        routing_file,
        f"http://127.0.0.1:{router.port}",
        api_key_env="KEY_OF_CLIENTS",
        overlong=True,
    ).to_dict()
    verdicts = {(p["kind"], p["verdict"]) for p in found["probes"]}
    assert not {v for _, v in verdicts} - {"ok", "not offered"}, found["probes"]
    assert {("length", "ok"), ("header", "ok"), ("overlong", "ok")} <= verdicts


def test_verify_routes_sees_a_router_that_sends_all_to_one(
    routing_file: Path, tmp_path: Path
) -> None:
    """A policy with a threshold ten times as high, in a router that is asked about the real one."""
    policy = own_policy()
    chat = {"max_prompt_bytes": 10**6}
    changed = RoutingPolicy.from_dict(
        policy.to_dict()
        | {
            "routes": [
                r | (chat if r["instance"] == "chat" else {}) for r in policy.to_dict()["routes"]
            ]
        }
    )
    backends = servers()
    for one in backends["chat"]:
        one.max_model_len = 10**6
    with started("nginx", changed, backends, tmp_path) as running:
        found = verify_routes(routing_file, f"http://127.0.0.1:{running.port}", kinds=["length"])
    assert "wrong" in {p["verdict"] for p in found.to_dict()["probes"]}


def test_the_example_application_through_litellm(
    tmp_path_factory: pytest.TempPathFactory, routing_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The openai client, the proxy, and servers that answer with their names."""
    openai = pytest.importorskip("openai")
    monkeypatch.syspath_prepend(str(EXAMPLE))
    sys.modules.pop("app", None)
    app = pytest.importorskip("app")
    folder = tmp_path_factory.mktemp("example")
    with started("litellm", own_policy(), servers(), folder) as running:
        client = openai.OpenAI(
            base_url=f"http://127.0.0.1:{running.port}/v1", api_key=MASTER_KEY, max_retries=0
        )
        document = "The penalty is two percent a week.\n\n" + "word " * 20_000
        made = app.App(
            Decider(routing_file), client, document, outages=(openai.APIConnectionError,)
        )
        assert made.ask("What is the penalty?") == "chat", "passages go to the short instance"
        talk = app.App(Decider(routing_file), client, "", outages=(openai.APIConnectionError,))
        assert talk.ask("word " * 20_000) == "long-docs"
