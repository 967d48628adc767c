"""A policy over recorded traffic: counted by hand, against the router, and as invariants."""

from __future__ import annotations

import csv
import dataclasses
import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policies import CONTRACTS

from vllm_advisor.errors import InputError
from vllm_advisor.parse.trace import Trace
from vllm_advisor.routing import Action, Router
from vllm_advisor.routing.landing import Asked, Landings, Way
from vllm_advisor.routing.traffic import Tally, Traffic, route_traffic
from vllm_advisor.routing.what_if import what_if, with_threshold
from vllm_advisor.types.routing_costs import TokenPrices
from vllm_advisor.types.trace import TracedRequest
from vllm_advisor.types.workload import Needs

DATA = Path(__file__).parents[2] / "data" / "traces"
LONG_LIMIT = 120_880


def requests(*rows: dict[str, object]) -> list[TracedRequest]:
    return [TracedRequest(**row) for row in rows]


def total(traffic: Traffic) -> Tally:
    return Tally.summed(traffic.by_way().values())


SMALL = requests(
    {"prompt_tokens": 6168, "output_tokens": 1000},  # chat: 7,168 tokens, just as many as it reads
    {"prompt_tokens": 6168, "output_tokens": 1001},  # chat, and one token too long
    {"prompt_tokens": 100, "output_tokens": 10, "max_tokens": 7100},  # 7,168 - 7,100 = 68: long
    {"prompt_tokens": 9000, "output_tokens": 20, "needs": Needs.LOOKUP},  # rag: 300 + 5 x 800
    {"prompt_tokens": 9000, "output_tokens": 30, "needs": Needs.LOOKUP, "retrieved_tokens": 2000},
    {"prompt_tokens": 9000, "output_tokens": 40, "needs": Needs.RECENT_ONLY},  # 6,168 of it: chat
    {"prompt_tokens": 9000, "output_tokens": 50, "request_class": "contract-review"},  # pinned
    {"prompt_tokens": 120_881, "output_tokens": 60},  # refused
    {"prompt_tokens": 200_000},  # refused, and nothing was generated
)


def test_by_hand() -> None:
    traffic = route_traffic(CONTRACTS, SMALL)
    got = traffic.by_route()
    chat, rag, long = got["chat"], got["rag"], got["long-docs"]
    assert (chat.requests, rag.requests, long.requests) == (3, 2, 2)
    assert chat.sent_tokens == 6168 + 6168 + 6168
    assert chat.prompt_tokens == 6168 + 6168 + 9000
    assert chat.output_tokens == 1000 + 1001 + 40
    assert rag.sent_tokens == 4300 + 2000
    assert rag.prompt_tokens == 18_000
    assert long.sent_tokens == 100 + 9000
    ways = traffic.by_way()
    assert {way: tally.requests for way, tally in ways.items()} == {
        Way.WHOLE: 4,
        Way.PASSAGES: 2,
        Way.BOUNDED: 1,
        Way.REFUSED: 2,
    }
    refused = ways[Way.REFUSED]
    assert (refused.prompt_tokens, refused.sent_tokens) == (320_881, 0)
    assert refused.longest_prompt_tokens == 200_000
    # What is generated was not known beforehand, and is longer than the route takes: once.
    # The shortened history counts with 6,168 tokens: 6,168 + 40 are within 7,168.
    assert traffic.cut_answers == {"chat": 1}
    everything = total(traffic)
    assert (everything.requests, everything.without_output) == (9, 1)
    # 18,504 x $3 and 2,041 x $15, per million: 0.055512 + 0.030615
    assert chat.usd(CONTRACTS.prices) == pytest.approx(0.086127)
    # 1,000 of them cached for nothing: $0.003 less
    assert chat.usd(CONTRACTS.prices, 1000) == pytest.approx(0.083127)


def test_a_price_that_is_not_known() -> None:
    chat = route_traffic(CONTRACTS, SMALL).by_route()["chat"]
    assert chat.usd(TokenPrices()) is None
    assert chat.usd(TokenPrices(output=1.0)) is None
    assert chat.usd(TokenPrices(input=1.0)) is None  # generated tokens are not for nothing
    silent = route_traffic(CONTRACTS, requests({"prompt_tokens": 5})).by_route()["chat"]
    assert silent.usd(TokenPrices(input=1.0)) == pytest.approx(5e-6)
    assert silent.known_output_tokens is None


def test_what_a_row_says_wins_over_what_is_said_for_all() -> None:
    rows = requests(
        {"prompt_tokens": 9000},
        {"prompt_tokens": 9000, "needs": Needs.WHOLE_DOCUMENT},
        {"prompt_tokens": 9000, "request_class": "contract-review"},
    )
    got = route_traffic(CONTRACTS, rows, needs=Needs.LOOKUP).by_route()
    # Its class is pinned: what the answer needs decides nothing there.
    assert (got["rag"].requests, got["long-docs"].requests) == (1, 2)
    rows = requests(
        {"prompt_tokens": 100},
        {"prompt_tokens": 100, "request_class": "chat"},
    )
    got = route_traffic(CONTRACTS, rows, request_class="contract-review").by_route()
    assert (got["chat"].requests, got["long-docs"].requests) == (1, 1)
    with pytest.raises(InputError, match="no class 'x'"):
        route_traffic(CONTRACTS, rows, request_class="x")


def test_prefixes_count_where_the_whole_prompt_is_sent() -> None:
    rows = requests(
        {"prompt_tokens": 1024, "hash_ids": (1, 2)},  # chat
        {"prompt_tokens": 1024, "hash_ids": (1, 2)},  # chat: 1,023 hits
        {"prompt_tokens": 9216, "hash_ids": tuple(range(1, 19))},  # long-docs: its own cache
        {"prompt_tokens": 9216, "hash_ids": tuple(range(1, 19)), "needs": Needs.LOOKUP},  # rag
        {"prompt_tokens": 122_880, "hash_ids": tuple(range(1, 241))},  # refused
        {"prompt_tokens": 1024},
    )
    reuse = route_traffic(CONTRACTS, rows, cache_tokens={"chat": 512}).reuse
    assert reuse is not None
    assert set(reuse.by_route) == {"chat", "long-docs"}
    assert (reuse.by_route["chat"].requests, reuse.by_route["chat"].hit_tokens) == (2, 1023)
    assert reuse.by_route["chat"].kept_hit_tokens == 512  # room for one block
    assert reuse.by_route["long-docs"].hit_tokens == 0
    # One cache for all five: 1,023; blocks 1 and 2: 1,024; all 18: 9,215; 18 of 240: 9,216.
    assert reuse.in_one.hit_tokens == 1023 + 1024 + 9215 + 9216
    assert route_traffic(CONTRACTS, rows[-1:]).reuse is None


def test_percentiles_by_nearest_rank() -> None:
    """Of 10 prompts p50 is the 5th, p90 the 9th, p91 and p95 the 10th (9.1 and 9.5 rounded up)."""
    rows = requests(*({"prompt_tokens": 10 * n} for n in (4, 9, 1, 7, 10, 3, 2, 6, 8, 5)))
    traffic = route_traffic(CONTRACTS, rows)
    assert traffic.prompt_percentiles((1, 10, 11, 50, 90, 91, 95, 100)) == [
        *(10, 10, 20, 50, 90, 100, 100, 100)
    ]


def possible(row: TracedRequest) -> TracedRequest:
    """A history is part of its prompt."""
    history = row.history_tokens
    return row if history is None else row._replace(history_tokens=min(history, row.prompt_tokens))


ROWS = st.builds(
    TracedRequest,
    prompt_tokens=st.integers(0, 8000) | st.integers(0, 130_000),
    output_tokens=st.none() | st.integers(0, 5000),
    needs=st.sampled_from([None, *Needs]),
    request_class=st.sampled_from([None, "chat", "clause-lookup", "contract-review"]),
    route=st.sampled_from([None, None, None, "chat", "rag", "long-docs"]),
    retrieved_tokens=st.none() | st.just(0) | st.integers(1, 8000),
    history_tokens=st.none() | st.integers(0, 8000),
    max_tokens=st.none() | st.integers(1, 130_000),
).map(possible)
ROOMIER = dataclasses.replace(
    CONTRACTS,
    routes=tuple(
        dataclasses.replace(route, max_model_len=9216) if route.name == "rag" else route
        for route in CONTRACTS.routes
    ),
)


@given(st.lists(ROWS, max_size=30), st.sampled_from([CONTRACTS, ROOMIER]))
def test_landings_are_what_the_router_decides(rows: list[TracedRequest], policy: object) -> None:
    """What is answered from memory is what the router says."""
    landings, router = Landings(policy), Router(policy)
    for row in rows:
        asked = Asked(
            row.prompt_tokens,
            row.needs,
            row.request_class,
            row.route,
            row.retrieved_tokens,
            row.history_tokens,
            row.max_tokens,
        )
        landing = landings.of(asked)
        decision = router.decide(**asked._asdict())
        assert (landing.route and landing.route.name) == decision.route
        if decision.route is None:
            assert landing.way is Way.REFUSED
        elif decision.action is Action.BOUND_HISTORY:
            assert (landing.way, landing.sent_tokens) == (Way.BOUNDED, decision.max_prompt_tokens)
        else:
            assert landing.sent_tokens == decision.prompt_tokens
            passages = decision.action is Action.RETRIEVE or decision.retrieved
            assert landing.way is (Way.PASSAGES if passages else Way.WHOLE)


@given(st.lists(ROWS, min_size=1, max_size=30))
def test_nothing_is_lost(rows: list[TracedRequest]) -> None:
    traffic = route_traffic(CONTRACTS, rows)
    routes, ways = traffic.by_route(), traffic.by_way()
    refused = ways[Way.REFUSED]
    assert sum(t.requests for t in routes.values()) + refused.requests == len(rows)
    asked = sum(t.prompt_tokens for t in routes.values()) + refused.prompt_tokens
    assert asked == sum(row.prompt_tokens for row in rows)
    sent = sum(t.sent_tokens for t in routes.values())
    saved = sum(
        ways[way].prompt_tokens - ways[way].sent_tokens for way in (Way.PASSAGES, Way.BOUNDED)
    )
    assert sent + saved + refused.prompt_tokens == asked
    assert total(traffic).output_tokens == sum(row.output_tokens or 0 for row in rows)


@given(st.lists(ROWS, min_size=1, max_size=30), st.lists(st.integers(1, LONG_LIMIT), max_size=5))
def test_a_higher_threshold_never_sends_the_first_route_less(
    rows: list[TracedRequest], thresholds: list[int]
) -> None:
    traffic = route_traffic(CONTRACTS, rows)
    found = what_if(traffic, thresholds)
    limits = [each.max_prompt_tokens for each in found]
    assert limits == sorted(set(limits))
    assert {6168, *thresholds} <= set(limits)
    firsts = []
    for each in found:
        assert each.sent.requests + each.refused.requests == len(rows)
        got = route_traffic(with_threshold(CONTRACTS, each.max_prompt_tokens), rows).by_route()
        assert each.sent == Tally.summed(got.values())
        firsts.append(got["chat"].requests)
    assert firsts == sorted(firsts)


def test_what_if_by_hand() -> None:
    """Ten prompts of 1,000 to 10,000 tokens; chat takes six of them, and more if it may."""
    rows = requests(*({"prompt_tokens": 1000 * n, "output_tokens": 10} for n in range(1, 11)))
    found = {w.max_prompt_tokens: w for w in what_if(route_traffic(CONTRACTS, rows), [8192, 5000])}
    # p50 is the 5th: 5,000; p75 the 8th (7.5): 8,000; p90 the 9th; p95 and p99 the 10th.
    assert {limit: w.because for limit, w in found.items()} == {
        5000: ("p50", "given"),
        6168: ("present",),
        8000: ("p75",),
        8192: ("given",),
        9000: ("p90",),
        10_000: ("p95", "p99"),
    }
    # 5,000 + 1,000 for the answer: 5.86 x 1,024, so 6 x 1,024; 6,168 + 1,000 is 7 x 1,024.
    lengths = {limit: w.max_model_len for limit, w in found.items()}
    assert lengths == {
        5000: 6144,
        6168: 7168,
        8000: 9216,
        8192: 9216,
        9000: 10_240,
        10_000: 11_264,
    }
    firsts = {limit: w.instances["chat"].requests for limit, w in found.items()}
    assert firsts == {5000: 5, 6168: 6, 8000: 8, 8192: 8, 9000: 9, 10_000: 10}
    assert found[8192].instances["chat"].sent_tokens == 36_000
    assert found[8192].instances["long-docs"].sent_tokens == 19_000
    # 55,000 x $3 + 100 x $15 per million, whatever the instance.
    assert found[8192].sent.usd(CONTRACTS.prices) == pytest.approx(0.1665)


def test_no_threshold_is_above_the_next_route() -> None:
    rows = requests({"prompt_tokens": 200_000}, {"prompt_tokens": 0})
    traffic = route_traffic(CONTRACTS, rows)
    # p50 is 0 tokens, of which a route cannot take less than 1; the others are refused prompts.
    assert [(w.max_prompt_tokens, w.because) for w in what_if(traffic)] == [
        (1, ("p50",)),
        (6168, ("present",)),
        (LONG_LIMIT, ("below p75", "below p90", "below p95", "below p99")),
    ]
    for threshold in (0, LONG_LIMIT + 1):
        with pytest.raises(InputError, match="no threshold for chat") as caught:
            what_if(traffic, [threshold])
        assert caught.value.where == "--threshold"


def test_one_route_has_no_threshold() -> None:
    alone = dataclasses.replace(CONTRACTS, by_length=("long-docs",))
    traffic = route_traffic(alone, requests({"prompt_tokens": 5}))
    assert what_if(traffic) == ()
    with pytest.raises(InputError, match="no threshold to move"):
        what_if(traffic, [4096])


def lengths_of(name: str) -> list[tuple[int, int]]:
    """Read without any of our code."""
    with (DATA / name).open(encoding="utf-8", newline="") as stream:
        if name.endswith(".csv"):
            rows = list(csv.DictReader(stream))
            return [(int(r["ContextTokens"]), int(r["GeneratedTokens"])) for r in rows]
        rows = [json.loads(line) for line in stream]
        return [(r["input_length"], r["output_length"]) for r in rows]


@pytest.mark.parametrize(
    "name", ["azure_llm_2023_conv_head.csv", "mooncake_conversation_head.jsonl"]
)
def test_public_traces_by_an_independent_count(name: str) -> None:
    counts: Counter[str] = Counter()
    tokens: Counter[str] = Counter()
    cut: Counter[str] = Counter()
    for prompt, output in lengths_of(name):
        place = "chat" if prompt <= 6168 else "long-docs" if prompt <= 120_880 else "refused"
        counts[place] += 1
        tokens[place] += prompt
        if place != "refused" and prompt + output > {"chat": 7168, "long-docs": 122_880}[place]:
            cut[place] += 1
    assert sum(counts.values()) == 200
    traffic = route_traffic(CONTRACTS, Trace(str(DATA / name)))
    got = {**traffic.by_route(), "refused": traffic.by_way()[Way.REFUSED]}
    assert {place: t.requests for place, t in got.items() if t.requests} == counts
    assert {place: t.prompt_tokens for place, t in got.items() if t.requests} == tokens
    assert traffic.cut_answers == cut
    for percent, length in zip((50, 99), traffic.prompt_percentiles((50, 99)), strict=True):
        ordered = sorted(prompt for prompt, _ in lengths_of(name))
        assert length == ordered[percent * 2 - 1]  # of 200: the 100th and the 198th


def test_prefix_reuse_of_the_public_trace_by_an_independent_count() -> None:
    seen: dict[str, set[int]] = {"chat": set(), "long-docs": set(), "one": set()}
    hits: Counter[str] = Counter()
    with (DATA / "mooncake_conversation_head.jsonl").open(encoding="utf-8") as stream:
        for row in map(json.loads, stream):
            prompt, ids = row["input_length"], row["hash_ids"]
            for cache in ("one", "chat" if prompt <= 6168 else "long-docs"):
                run = 0
                while run < len(ids) and ids[run] in seen[cache]:
                    run += 1
                seen[cache].update(ids)
                hits[cache] += min(512 * run, prompt - 1)
    reuse = route_traffic(CONTRACTS, Trace(str(DATA / "mooncake_conversation_head.jsonl"))).reuse
    assert reuse is not None
    assert hits["one"] > 0
    assert reuse.in_one.hit_tokens == hits["one"]
    assert {name: each.hit_tokens for name, each in reuse.by_route.items()} == {
        "chat": hits["chat"],
        "long-docs": hits["long-docs"],
    }
