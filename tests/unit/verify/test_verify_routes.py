"""Probes through a router on this machine that reads the policy, or gets it wrong."""

from __future__ import annotations

import dataclasses
from contextlib import ExitStack

import pytest
import yaml
from fake_openai import TEMPLATE_TOKENS, Fake, completion, error, serving, words
from policies import CHAT, CONTRACTS, LONG

from vllm_advisor.api import verify_routes
from vllm_advisor.errors import InputError, UnknownFactError
from vllm_advisor.routing import Router
from vllm_advisor.types.routing import RoutingPolicy

# 1,000 tokens for a prompt x 4 bytes x (1 - 0.25) = 3,000 bytes, at most 5 bytes per token: from
# 600 tokens on a router that counts bytes may send it on.
SMALL = dataclasses.replace(
    CONTRACTS,
    routes=(
        dataclasses.replace(
            CHAT, max_model_len=1200, reserved_output_tokens=200, max_prompt_tokens=1000,
            max_prompt_bytes=3000,
        ),
        dataclasses.replace(
            LONG, max_model_len=9000, reserved_output_tokens=1000, max_prompt_tokens=8000,
            max_prompt_bytes=24_000,
        ),
    ),
    retrieval=None,
    classes=(),
)  # fmt: skip


class FakeRouter:
    """Routes as the policy says, by tokens: a word is one, which is more bytes than reckoned."""

    def __init__(self, policy: RoutingPolicy = SMALL, *, header: str | None = "x-vllm-instance"):
        self.router = Router(policy)
        self.header = header
        self.names = True
        self.landed: list[str] = []

    def instance(self, asked: dict, headers: dict[str, str], tokens: int) -> str | None:
        known = [route.name for route in self.router.policy.routes]
        if asked["model"] in known:
            name = asked["model"]
        else:
            name = headers.get("x-workload")
            if headers.get("x-litellm-tags") != name:
                return None
        return self.router.decide(prompt_tokens=tokens, route=name).instance

    def __call__(self, asked: dict, headers: dict[str, str]):
        tokens = words(asked["messages"][0]["content"]) + TEMPLATE_TOKENS
        if asked["model"] != CONTRACTS.model and not self.names:
            return 404, error(f"The model `{asked['model']}` does not exist."), {}
        instance = self.instance(asked, headers, tokens)
        if instance is None:
            return 400, error("This model's maximum context length is 9000 tokens."), {}
        self.landed.append(instance)
        said = {self.header: instance} if self.header else {}
        return 200, completion("ok", tokens), said


@pytest.fixture
def plan(tmp_path):
    path = tmp_path / "routing.yaml"
    path.write_text(yaml.safe_dump({"schema_version": "1", **SMALL.to_dict()}))
    return path


def run(fake, plan, **options):
    return verify_routes(plan, fake.url, **options).to_dict()


def shown(result):
    return [(p["kind"], p["expected"], p["landed"], p["verdict"]) for p in result["probes"]]


RIGHT = [
    ("header", "chat", "chat", "ok"),
    ("header", "long-docs", "long-docs", "ok"),
    ("model", "chat", "chat", "ok"),
    ("model", "long-docs", "long-docs", "ok"),
    ("length", "chat", "chat", "ok"),
    ("length", "long-docs", "long-docs", "ok"),
]


def test_a_router_that_follows_the_plan(plan):
    with serving(Fake(reply=FakeRouter())) as fake:
        result = run(fake, plan.parent, overlong=True)
    assert shown(result) == [*RIGHT, ("overlong", "refused", "refused", "ok")]
    assert result["passed"] is True
    assert {p["by"] for p in result["probes"]} == {"header", None}
    assert {asked["max_tokens"] for asked in fake.chats} == {1}
    prompts = [asked["messages"][0]["content"] for asked in fake.chats]
    assert len(set(prompts)) == len(prompts)
    first, second = (p for p in result["probes"] if p["kind"] == "length")
    assert first["asked"] == {"model": CONTRACTS.model, "header": None, "tokens": 500}
    # A line of the filler has 74 bytes and 14 words, 5.3 bytes per token and not 4, as the sample
    # that goes first tells.
    assert len(fake.chats) == len(result["probes"]) + 1
    assert abs(first["prompt_tokens"] - 500) <= 50
    assert abs(second["prompt_tokens"] - 4500) <= 450  # (1,000 + 8,000) / 2


def test_only_some_kinds(plan):
    with serving(Fake(reply=FakeRouter())) as fake:
        result = run(fake, plan, kinds=["header"])
    assert shown(result) == RIGHT[:2]


def test_litellm_says_which_deployment_it_was(plan):
    with serving(Fake(reply=FakeRouter(header="x-litellm-model-id"))) as fake:
        result = run(fake, plan, kinds=["length"])
    assert shown(result) == RIGHT[4:]
    assert {p["by"] for p in result["probes"]} == {"litellm"}


def test_names_that_are_not_offered_are_no_failure(plan):
    router = FakeRouter()
    router.names = False
    with serving(Fake(reply=router)) as fake:
        result = run(fake, plan)
    assert [p["verdict"] for p in result["probes"] if p["kind"] == "model"] == ["not offered"] * 2
    assert result["passed"] is True


def test_a_router_that_sends_all_to_one(plan):
    router = FakeRouter()
    router.instance = lambda *_: "chat"
    with serving(Fake(reply=router)) as fake:
        result = run(fake, plan)
    wrong = [p for p in result["probes"] if p["verdict"] == "wrong"]
    assert [(p["kind"], p["expected"], p["landed"]) for p in wrong] == [
        ("header", "long-docs", "chat"),
        ("model", "long-docs", "chat"),
        ("length", "long-docs", "chat"),
    ]
    assert wrong[0]["detail"] == "chat answered; the plan sends it to long-docs"
    assert result["passed"] is False


def test_near_a_limit_bytes_may_decide(plan):
    def counts_700(_asked, _headers):
        return 200, completion("ok", 700), {"x-vllm-instance": "chat"}

    with serving(Fake(reply=counts_700)) as fake:
        result = run(fake, plan, kinds=["length"])
    assert {p["verdict"] for p in result["probes"]} == {"inconclusive"}
    assert "near the limit of chat" in result["probes"][0]["detail"]
    assert result["passed"] is True
    assert result["notes"] == ["no probe shows that the router follows the plan"]


def test_answers_without_usage(plan):
    router = FakeRouter()

    def silent(asked, headers):
        status, body, said = router(asked, headers)
        body.pop("usage", None)
        return status, body, said

    with serving(Fake(reply=silent)) as fake:
        result = run(fake, plan, kinds=["header"])
    assert [p["verdict"] for p in result["probes"]] == ["inconclusive"] * 2
    assert "no usage" in result["probes"][0]["detail"]


def test_refusals_fail(plan):
    with serving(Fake(reply=lambda *_: (503, "no healthy upstream", {}))) as fake:
        result = run(fake, plan, kinds=["header", "model"])
    assert [p["verdict"] for p in result["probes"]] == ["failed"] * 4
    assert result["probes"][0]["detail"] == "HTTP 503: no healthy upstream"
    with serving(Fake(reply=lambda *_: (404, "", {}))) as fake:
        result = run(fake, plan, kinds=["header"], overlong=True)
    assert [p["verdict"] for p in result["probes"]] == ["failed"] * 3


def test_an_overlong_prompt_that_is_answered(plan):
    def takes_all(asked, _headers):
        tokens = words(asked["messages"][0]["content"])
        return 200, completion("ok", tokens), {"x-vllm-instance": "long-docs"}

    def cuts(_asked, _headers):
        return 200, completion("ok", 100), {"x-vllm-instance": "chat"}

    with serving(Fake(reply=takes_all)) as fake:
        long = run(fake, plan, kinds=["length"], overlong=True)["probes"][-1]
    assert long["prompt_tokens"] > 9000
    assert (long["expected"], long["landed"], long["verdict"]) == ("refused", "long-docs", "wrong")
    with serving(Fake(reply=cuts)) as fake:
        cut = run(fake, plan, kinds=["header"], overlong=True)["probes"][-1]
    assert cut["verdict"] == "inconclusive"


def counting(fake: Fake, count: int) -> None:
    fake.metrics = f'vllm:request_success_total{{finished_reason="length"}} {count}.0\n'


def test_counters_tell_who_answered(plan):
    with ExitStack() as stack:
        instances = {n: stack.enter_context(serving(Fake())) for n in ("chat", "long-docs")}
        second = stack.enter_context(serving(Fake()))
        counts = dict.fromkeys(instances, 0)
        for each in (*instances.values(), second):
            counting(each, 5)
        router = FakeRouter(header=None)

        def routed(asked, headers):
            said = router(asked, headers)
            name = router.landed[-1]
            counts[name] += 1
            counting(instances[name], 5 + counts[name])
            return said

        fake = stack.enter_context(serving(Fake(reply=routed, key="secret")))
        stack.enter_context(pytest.MonkeyPatch.context()).setenv("VLLM_API_KEY", "secret")
        options = [f"{name}={each.url}" for name, each in instances.items()]
        result = run(fake, plan, instances=[*options, f"chat={second.url}/metrics"])
        assert shown(result) == RIGHT
        assert {p["by"] for p in result["probes"]} == {"metrics"}
        assert set(instances["chat"].keys) == {None}  # the router's key is not theirs
        assert set(second.paths) == {"/metrics"}


def test_counters_that_tell_nothing(plan, monkeypatch):
    monkeypatch.setattr("vllm_advisor.verify.routes._LAG_SECONDS", 0.05)
    with serving(Fake()) as one, serving(Fake(reply=FakeRouter(header=None))) as fake:
        counting(one, 5)
        still = run(fake, plan, kinds=["header"], instances=[f"chat={one.url}"])
    assert {p["verdict"] for p in still["probes"]} == {"unknown"}
    assert still["passed"] is False
    assert "did not grow" in still["probes"][0]["detail"]
    with serving(Fake()) as one, serving(Fake()) as two:
        router = FakeRouter(header=None)

        def busy(asked, headers):
            said = router(asked, headers)
            counting(one, 5 + len(router.landed))
            counting(two, 5 + len(router.landed))
            return said

        counting(one, 5)
        counting(two, 5)
        with serving(Fake(reply=busy)) as fake:
            result = run(fake, plan, kinds=["header"],
                         instances=[f"chat={one.url}", f"long-docs={two.url}"])  # fmt: skip
    assert "other traffic" in result["probes"][0]["detail"]


def test_without_headers_and_counters_nobody_knows(plan):
    with serving(Fake(reply=FakeRouter(header=None))) as fake:
        result = verify_routes(plan, fake.url, kinds=["header"])
    assert result.unknown == 2
    assert result.to_dict()["probes"][0]["landed"] is None


@pytest.mark.parametrize(
    ("metrics", "what"), [("", "no vLLM metrics"), ("vllm:request_success_total NaN\n", "finite")]
)
def test_instances_without_counters(metrics, what, plan):
    with (
        serving(Fake(metrics=metrics)) as one,
        serving(Fake(reply=FakeRouter())) as fake,
        pytest.raises(UnknownFactError, match=what),
    ):
        run(fake, plan, instances=[f"chat={one.url}"])


def test_a_key_that_is_refused_ends_the_run(plan):
    with (
        serving(Fake(key="secret")) as fake,
        pytest.raises(UnknownFactError, match="wants an API key"),
    ):
        run(fake, plan)


@pytest.mark.parametrize("word", ["chat", "other=http://h", "chat=h", "chat=http://u:p@h"])
def test_instances_that_cannot_be_used(word, plan):
    with pytest.raises(InputError) as caught:
        verify_routes(plan, "http://127.0.0.1:1", instances=[word])
    assert caught.value.where == "--instance"


def test_plans_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="has neither"):
        verify_routes(tmp_path, "http://127.0.0.1:1")
    (tmp_path / "routing.yaml").write_text("routes: []\n")
    with pytest.raises(InputError, match="schema_version"):
        verify_routes(tmp_path, "http://127.0.0.1:1")
