"""Which probes a policy asks for, where responses say they landed, and the verdicts."""

from __future__ import annotations

import dataclasses
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policies import CHAT, CONTRACTS, LONG

from vllm_advisor.types.routing import RoutingPolicy
from vllm_advisor.verify.landing import By, Landing, grown, instance_of
from vllm_advisor.verify.metrics import sample_sum
from vllm_advisor.verify.probes import (
    REFUSED,
    Kind,
    expected_instance,
    filler,
    in_margin,
    length_targets,
    probes,
)

ALL = set(Kind)


def test_probes_of_every_kind():
    made = probes(CONTRACTS, ALL, cap=20_000)
    assert [(p.kind, p.model, p.route, p.tokens) for p in made] == [
        ("header", CONTRACTS.model, "chat", 16),
        ("header", CONTRACTS.model, "rag", 16),
        ("header", CONTRACTS.model, "long-docs", 16),
        ("model", "chat", "chat", 16),
        ("model", "rag", "rag", 16),
        ("model", "long-docs", "long-docs", 16),
        ("length", CONTRACTS.model, None, 3084),  # 6,168 / 2
        ("length", CONTRACTS.model, None, 20_000),  # (6,168 + 120,880) / 2 = 63,524, capped
        ("overlong", CONTRACTS.model, None, 153_600),  # 122,880 x 5 / 4
    ]
    assert made[1].headers == {"x-workload": "rag", "x-litellm-tags": "rag"}
    assert made[3].headers == {}
    assert [p.kind for p in probes(CONTRACTS, {Kind.MODEL}, cap=1)] == ["model"] * 3


@pytest.mark.parametrize(
    ("cap", "targets"),
    [
        (1_000_000, (3084, 63_524)),
        (8_000, (3084, 9_252)),  # above the cap, to be clearly above 6,168: x 1.5
        (1_000, (1000, 9_252)),
    ],
)
def test_lengths(cap, targets):
    assert length_targets(CONTRACTS, cap=cap) == targets


def test_a_wide_margin_keeps_probes_short():
    # 6,168 x 4 x (1 - 0.5) = 12,336 bytes hold at least 12,336 / 6 = 2,056 tokens; x 0.9: 1,850.
    wide = dataclasses.replace(
        CONTRACTS,
        routes=(dataclasses.replace(CHAT, max_prompt_bytes=12_336), *CONTRACTS.routes[1:]),
        byte_count=dataclasses.replace(CONTRACTS.byte_count, margin=0.5),
    )
    assert length_targets(wide, cap=20_000) == (1850, 20_000)
    assert in_margin(wide, 2056) is None
    assert in_margin(wide, 2057) == "chat"


@st.composite
def policies(draw) -> RoutingPolicy:
    limits = sorted(draw(st.lists(st.integers(1, 1_000_000), min_size=1, max_size=4)))
    margin = draw(st.floats(0, 0.9))
    routes = tuple(
        dataclasses.replace(
            LONG,
            name=f"r{n}",
            instance=f"i{n}",
            max_prompt_tokens=limit,
            max_model_len=limit + 2000,
            max_prompt_bytes=max(1, int(limit * 4 * (1 - margin))),
            on_overflow=f"r{n + 1}" if n + 1 < len(limits) else None,
        )
        for n, limit in enumerate(limits)
    )
    return RoutingPolicy(
        plan="p",
        model="m",
        routes=routes,
        by_length=tuple(r.name for r in routes),
        byte_count=dataclasses.replace(CONTRACTS.byte_count, margin=margin),
    )


@given(policies(), st.integers(1, 1_000_000))
def test_each_length_is_within_the_range_of_its_own_route(policy, cap):
    targets = length_targets(policy, cap=cap)
    assert list(targets) == sorted(set(targets))
    limits = [0, *(policy.route(name).max_prompt_tokens for name in policy.by_length)]
    ranges = list(itertools.pairwise(limits))
    hit = [next(i for i, (low, high) in enumerate(ranges) if low < t <= high) for t in targets]
    assert len(set(hit)) == len(hit)
    for index, target in zip(hit, targets, strict=True):
        assert target <= max(cap, ranges[index][0] * 3 // 2)


def test_expected_instances():
    by_length, named = probes(CONTRACTS, {Kind.LENGTH, Kind.HEADER}, cap=20_000)[3::-2]
    assert by_length.route is None
    assert expected_instance(CONTRACTS, by_length, 6168) == "chat"
    assert expected_instance(CONTRACTS, by_length, 6169) == "long-docs"
    assert expected_instance(CONTRACTS, by_length, 120_881) == REFUSED
    assert named.route == "rag"
    assert expected_instance(CONTRACTS, named, 40) == "chat"  # rag is served by it


def test_the_margin_of_routers_that_count_bytes():
    # 18,504 bytes are 18,504 / (4 x 1.25) = 3,700.8 tokens at the most bytes per token.
    assert in_margin(CONTRACTS, 3700) is None
    assert in_margin(CONTRACTS, 3701) == "chat"
    assert in_margin(CONTRACTS, 6168) == "chat"
    assert in_margin(CONTRACTS, 6169) is None
    assert in_margin(CONTRACTS, 120_000) is None  # nothing comes after the last route


@given(st.integers(1, 5000), st.floats(0.5, 8))
def test_fillers_have_their_size(tokens, bytes_per_token):
    text = filler("Probe 1.", tokens, bytes_per_token)
    assert text.startswith("Probe 1.\n")
    assert text.isascii()
    assert len(text) == max(int(tokens * bytes_per_token), len("Probe 1.\n"))


INSTANCES = ("chat", "chat-long", "long-docs")


@pytest.mark.parametrize(
    ("headers", "instance", "by"),
    [
        ({"x-vllm-instance": "chat"}, "chat", By.HEADER),
        ({"x-vllm-instance": " long-docs "}, "long-docs", By.HEADER),
        ({"x-vllm-instance": "chat-0"}, "chat", By.HEADER),
        ({"x-vllm-instance": "chat", "x-litellm-model-id": "long-docs"}, "chat", By.HEADER),
        ({"x-litellm-model-id": "long-docs"}, "long-docs", By.LITELLM),
        ({"x-litellm-model-id": "long-docs-1"}, "long-docs", By.LITELLM),
        ({"x-litellm-model-id": "chat-long-2"}, "chat-long", By.LITELLM),
        ({"x-litellm-model-id": "chat-long"}, "chat-long", By.LITELLM),
        ({"x-litellm-model-id": "rag:chat-0"}, "chat", By.LITELLM),
        ({"x-litellm-model-id": "chat:long-docs"}, "long-docs", By.LITELLM),
        ({"x-litellm-model-id": "chat-rag:long-docs-1"}, "long-docs", By.LITELLM),
        ({"x-litellm-model-id": "long-docs:rag.1"}, "long-docs", By.LITELLM),
        ({"x-litellm-model-id": "team.long-docs"}, "long-docs", By.LITELLM),
        ({"x-litellm-model-id": "team.long-docs.0"}, "long-docs", By.LITELLM),
    ],
)
def test_headers_that_name_an_instance(headers, instance, by):
    assert instance_of(headers, INSTANCES) == Landing(instance=instance, by=by)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-vllm-instance": ""},
        {"x-vllm-instance": "other"},
        {"x-litellm-model-id": "9f86d081884c7d65"},
        {"x-litellm-model-id": "chatty"},
        {"x-served-by": "chat"},
    ],
)
def test_headers_that_name_none(headers):
    assert instance_of(headers, INSTANCES) is None


METRICS = """\
# HELP vllm:request_success_total Count of successfully processed requests.
# TYPE vllm:request_success_total counter
vllm:request_success_total{engine="0",finished_reason="stop",model_name="a}b c"} 3.0
vllm:request_success_total{engine="0",finished_reason="length",model_name="a"} 4.0 1700000000000
vllm:request_success_created{engine="0"} 1.7e+09
vllm:prompt_tokens_total{engine="0"} 1.5e+03
plain_total 2
broken_total NaN
"""


def test_counters_are_summed_over_their_labels():
    assert sample_sum(METRICS, "vllm:request_success_total") == 7.0  # 3 + 4
    assert sample_sum(METRICS, "vllm:prompt_tokens_total") == 1500.0
    assert sample_sum(METRICS, "plain_total") == 2.0
    assert sample_sum(METRICS, "vllm:request_success") is None
    with pytest.raises(ValueError, match="broken_total"):
        sample_sum(METRICS, "broken_total")
    assert grown({"a": 1.0, "b": 2.0}, {"a": 1.0, "b": 3.0}) == ("b",)
