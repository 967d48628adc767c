"""Which tokens each policy keeps, and what a needle test would find."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vllm_advisor.errors import InputError
from vllm_advisor.sizing.retention import (
    Full,
    HeavyHitters,
    Policy,
    Retention,
    SinksAndWindow,
    SlidingWindow,
    Support,
    TokenRange,
    Visibility,
    compare,
)

SEEN, LOST, DEPENDS = Visibility.SEEN, Visibility.LOST, Visibility.DEPENDS
ALL_POLICIES = (
    Full(),
    SlidingWindow(window=4096),
    SinksAndWindow(sinks=4, window=4096),
    HeavyHitters(budget=2048, recent=512),
)


def retain(policy: Policy, prompt_tokens: int, bytes_per_token: int = 1, **kwargs) -> Retention:
    (retention,) = compare([policy], prompt_tokens, bytes_per_token, **kwargs)
    return retention


def ranges(retention: Retention) -> list[tuple[int, int]]:
    return [(r.start, r.end) for r in retention.kept]


def visibility(retention: Retention) -> list[Visibility]:
    return [n.visibility for n in retention.needles]


def test_compare_128k_prompt_of_llama_3_1_8b():
    # KV bytes per token: 2 (K, V) x 32 layers x 8 KV heads x 128 x 2 bytes = 131,072.
    full, window, sinks, heavy = compare(ALL_POLICIES, 131_072, 131_072, needle_tokens=16)

    assert full.bytes == 131_072 * 131_072 == 16 * 2**30
    assert ranges(full) == [(0, 131_072)]
    assert visibility(full) == [SEEN, SEEN, SEEN]

    assert window.bytes == 4_096 * 131_072 == 2**29
    assert ranges(window) == [(131_072 - 4_096, 131_072)] == [(126_976, 131_072)]
    # 90 % of (131,072 - 16) is token 117,950, before the window starts.
    assert window.needles[2].needle == TokenRange(start=117_950, end=117_966)
    assert visibility(window) == [LOST, LOST, LOST]

    assert sinks.tokens == 4 + 4_096
    assert sinks.bytes == 4_100 * 131_072 == 537_395_200
    assert ranges(sinks) == [(0, 4), (126_976, 131_072)]
    assert visibility(sinks) == [LOST, LOST, LOST]

    # 512 certain + 2,048 - 512 = 1,536 chosen by attention.
    assert (heavy.tokens, heavy.chosen) == (2_048, 1_536)
    assert ranges(heavy) == [(130_560, 131_072)]
    assert visibility(heavy) == [DEPENDS, DEPENDS, DEPENDS]


def test_last_token_sees_exactly_the_window_itself_included():
    # 0 <= i - j < W with i = 9 and W = 4: j is 6, 7, 8 or 9. The two-sided |i - j| <= W would
    # give five positions on this side.
    last, window = 9, 4
    mask = [j for j in range(10) if 0 <= last - j < window]
    (kept,) = retain(SlidingWindow(window=window), 10, needle_tokens=1).kept
    assert list(range(kept.start, kept.end)) == mask == [6, 7, 8, 9]


def test_needle_cut_by_the_window_edge_is_lost():
    # 100 tokens, needle of 10 at 90 %: starts at 90 x 90 // 100 = 81, ends at 91.
    assert visibility(retain(SlidingWindow(window=19), 100, needle_tokens=10))[2] is SEEN
    assert visibility(retain(SlidingWindow(window=18), 100, needle_tokens=10))[2] is LOST


def test_sinks_that_meet_the_window_are_one_range():
    # 20 tokens, 12 sinks, window 8: [0, 12) and [12, 20) leave no gap.
    whole = retain(SinksAndWindow(sinks=12, window=8), 20, needle_tokens=6)
    assert ranges(whole) == [(0, 20)]
    # At 50 % the needle is [7, 13), across the seam, and still seen.
    assert whole.needles[1].needle == TokenRange(start=7, end=13)
    assert visibility(whole) == [SEEN, SEEN, SEEN]
    gap = retain(SinksAndWindow(sinks=11, window=8), 20, needle_tokens=6)
    assert ranges(gap) == [(0, 11), (12, 20)]
    # [1, 7) lies in the sinks, [7, 13) over the gap at 11, [12, 18) in the window.
    assert visibility(gap) == [SEEN, LOST, SEEN]


def test_no_sinks_is_a_plain_window():
    assert ranges(retain(SinksAndWindow(sinks=0, window=8), 20)) == [(12, 20)]


def test_heavy_hitters_within_budget_keep_everything():
    assert ranges(retain(HeavyHitters(budget=20, recent=5), 20)) == [(0, 20)]
    assert retain(HeavyHitters(budget=20, recent=5), 20).chosen == 0


def test_heavy_hitters_see_recent_needles_and_cannot_choose_more_than_their_slots():
    # 100 tokens, needle of 8: at 90 % it is [82, 90) since 92 x 90 // 100 = 82.
    assert visibility(retain(HeavyHitters(budget=30, recent=18), 100, needle_tokens=8))[2] is SEEN
    # recent 14 keeps [86, 100): 4 needle tokens are certain, 4 need one of 4 chosen slots ...
    four = retain(HeavyHitters(budget=18, recent=14), 100, needle_tokens=8)
    # ... and the needles at 10 % and 50 % need 8 of them.
    assert visibility(four) == [LOST, LOST, DEPENDS]
    three = retain(HeavyHitters(budget=17, recent=14), 100, needle_tokens=8)
    assert visibility(three) == [LOST, LOST, LOST]


def test_receptive_field_is_layers_times_window_less_one():
    # 3 layers of window 11: 3 x 10 + 1 = 31 last positions, [69, 100).
    policy = SlidingWindow(window=11)
    assert policy.receptive_field(100, 3) == (TokenRange(start=69, end=100),)
    three = retain(policy, 100, needle_tokens=10, num_layers=3)
    # Needles [9, 19), [45, 55), [81, 91): only the last may have had an influence; none is seen.
    assert [n.within_receptive_field for n in three.needles] == [False, False, True]
    assert visibility(three) == [LOST, LOST, LOST]
    # Mistral 7B v0.1: 32 layers x (4,096 - 1) + 1 = 131,041 positions.
    (field,) = SlidingWindow(window=4096).receptive_field(200_000, 32)
    assert field.tokens == 131_041


def test_receptive_field_of_other_policies():
    assert [n.within_receptive_field for n in retain(Full(), 100).needles] == [None] * 3
    for policy in (Full(), HeavyHitters(budget=8, recent=4)):
        found = retain(policy, 100, num_layers=1).needles
        assert [n.within_receptive_field for n in found] == [True] * 3
    # Sinks are in the field themselves, and carry nothing on.
    assert SinksAndWindow(sinks=4, window=11).receptive_field(100, 3) == (
        TokenRange(start=0, end=4),
        TokenRange(start=69, end=100),
    )


def test_only_full_attention_is_there_without_a_special_model():
    assert [p.vllm.support for p in ALL_POLICIES] == [
        Support.DEFAULT,
        Support.MODEL,
        Support.NONE,
        Support.NONE,
    ]
    for policy in ALL_POLICIES[1:]:
        assert policy.vllm.nearest
    text = " ".join(f"{p.vllm.how} {' '.join(p.vllm.nearest)}" for p in ALL_POLICIES)
    # The flags named are flags of vllm serve 0.33.0; none of them sets a window or evicts.
    assert set(re.findall(r"--[a-z0-9-]+", text)) == {
        "--disable-sliding-window",
        "--kv-cache-dtype",
        "--kv-offloading-size",
    }


@pytest.mark.parametrize(
    ("make", "where"),
    [
        (lambda: SlidingWindow(window=0), "window"),
        (lambda: SinksAndWindow(sinks=-1, window=4), "sinks"),
        (lambda: HeavyHitters(budget=4, recent=5), "budget"),
        (lambda: HeavyHitters(budget=0, recent=0), "budget"),
        (lambda: retain(Full(), 15, needle_tokens=16), "prompt_tokens"),
        (lambda: retain(Full(), 15, needle_tokens=0), "needle_tokens"),
        (lambda: retain(Full(), 15, -1), "bytes_per_token"),
        (lambda: retain(Full(), 16, num_layers=0), "num_layers"),
    ],
)
def test_impossible_counts_are_refused(make, where):
    with pytest.raises(InputError) as error:
        make()
    assert error.value.where == where
    assert error.value.fix


counts = st.integers(1, 400)
policies = st.one_of(
    st.just(Full()),
    st.builds(SlidingWindow, window=counts),
    st.builds(SinksAndWindow, sinks=st.integers(0, 400), window=counts),
    st.builds(
        lambda recent, more: HeavyHitters(budget=recent + more, recent=recent), counts, counts
    ),
)


def limit(policy: Policy) -> int:
    match policy:
        case SlidingWindow(window=window):
            return window
        case SinksAndWindow(sinks=sinks, window=window):
            return sinks + window
        case HeavyHitters(budget=budget):
            return budget
    return 10**9


@given(policies, st.integers(1, 1000), st.integers(0, 10**6), st.data())
def test_kept_tokens_bytes_and_needles_agree(policy, prompt_tokens, bytes_per_token, data):
    needle_tokens = data.draw(st.integers(1, prompt_tokens))
    kept = retain(policy, prompt_tokens, bytes_per_token, needle_tokens=needle_tokens, num_layers=2)
    # All that fits is kept, and never more.
    assert kept.tokens == min(prompt_tokens, limit(policy))
    assert kept.bytes == kept.tokens * bytes_per_token
    positions = [i for r in kept.kept for i in range(r.start, r.end)]
    assert positions == sorted(set(positions))
    assert len(positions) + kept.chosen == kept.tokens
    assert all(0 <= i < prompt_tokens for i in positions)
    assert prompt_tokens - 1 in positions
    for found in kept.needles:
        needle = set(range(found.needle.start, found.needle.end))
        assert len(needle) == needle_tokens
        assert needle <= set(range(prompt_tokens))
        assert (needle <= set(positions)) == (found.visibility is SEEN)
        if found.visibility is SEEN:
            assert found.within_receptive_field


@given(counts, counts, st.integers(0, 50), st.integers(1, 1000))
def test_more_window_never_keeps_less(one, two, sinks, prompt_tokens):
    small, large = sorted((one, two))
    for make in (
        lambda window: SlidingWindow(window=window),
        lambda window: SinksAndWindow(sinks=sinks, window=window),
        lambda window: HeavyHitters(budget=400, recent=window),
    ):
        less = retain(make(small), prompt_tokens, needle_tokens=1)
        more = retain(make(large), prompt_tokens, needle_tokens=1)
        assert less.tokens <= more.tokens
        inside = {i for r in less.kept for i in range(r.start, r.end)}
        assert inside <= {i for r in more.kept for i in range(r.start, r.end)}


@given(counts, st.integers(1, 60), st.integers(1, 4))
def test_receptive_field_is_what_masks_reach_layer_by_layer(prompt_tokens, window, num_layers):
    reached = {prompt_tokens - 1}
    for _ in range(num_layers):
        reached = {j for i in reached for j in range(max(0, i - window + 1), i + 1)}
    (field,) = SlidingWindow(window=window).receptive_field(prompt_tokens, num_layers)
    assert set(range(field.start, field.end)) == reached
