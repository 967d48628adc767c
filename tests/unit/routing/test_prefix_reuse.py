"""Prefix caches: what leading blocks were seen before, with and without a limit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vllm_advisor.routing.prefix_reuse import EndlessCache, LRUCache, PrefixReuse


def test_an_endless_cache_knows_the_leading_run_only() -> None:
    cache = EndlessCache()
    assert cache.known_blocks((1, 2, 3)) == 0
    assert cache.known_blocks((1, 2, 4)) == 2
    assert cache.known_blocks((9, 2, 3)) == 0  # a hit ends at the first unknown block
    assert cache.known_blocks((1, 2, 4, 5)) == 3
    assert cache.known_blocks(()) == 0


def test_a_limited_cache_drops_the_end_of_the_oldest_prompt_first() -> None:
    """Room for 4 blocks. After (1 2 3) and (7 8) one block has to go: 3, the end of the first."""
    cache = LRUCache(4)
    assert cache.known_blocks((1, 2, 3)) == 0
    assert cache.known_blocks((7, 8)) == 0
    assert cache.known_blocks((1, 2, 3)) == 2  # 3 comes back, and 8 goes: 7 8 was the older one
    assert cache.known_blocks((7, 8)) == 1


def test_a_prompt_that_is_longer_than_the_cache_leaves_its_start() -> None:
    cache = LRUCache(2)
    assert cache.known_blocks((1, 2, 3, 4)) == 0
    assert cache.known_blocks((1, 2, 3, 4)) == 2
    assert LRUCache(0).known_blocks((1,)) == 0


def test_hits_in_tokens() -> None:
    """Blocks of 512; instance a has room for 1,100 // 512 = 2 blocks, b's size is not known."""
    reuse = PrefixReuse(512, {"a": 1100})
    for ids, tokens, instance in (
        ((1, 2), 1000, "a"),  # nothing is known
        ((1, 2), 1000, "a"),  # 2 blocks are 1,024 tokens: capped at 1,000 - 1 = 999
        ((1, 3, 4), 1500, "a"),  # 1 block: 512
        ((1, 2), 900, "a"),  # endless: 2 blocks, capped at 899; limited keeps 1 and 3: 512
        ((1, 2), 600, "b"),  # another instance has seen nothing
    ):
        reuse.offer(ids, tokens)
        reuse.send(ids, tokens, route=f"route-{instance}", instance=instance)
    a = reuse.by_route["route-a"]
    assert (a.requests, a.prompt_tokens) == (4, 4400)
    assert a.hit_tokens == 999 + 512 + 899
    assert a.kept_hit_tokens == 999 + 512 + 512
    assert a.hit_rate == 2410 / 4400
    assert a.kept_hit_rate == 2023 / 4400
    b = reuse.by_route["route-b"]
    assert (b.hit_tokens, b.kept_hit_tokens, b.kept_hit_rate) == (0, None, None)
    # One cache for all: the request of b finds both blocks, capped at 600 - 1 = 599.
    assert reuse.in_one.hit_tokens == 2410 + 599
    both = reuse.together(("route-a", "route-b", "unused"))
    assert (both.requests, both.prompt_tokens, both.hit_tokens) == (5, 5000, 2410)
    assert both.kept_hit_tokens is None  # that of b is not known
    assert reuse.together(("unused",)).hit_rate is None


def test_too_few_ids_are_counted() -> None:
    reuse = PrefixReuse(512, {})
    reuse.offer((1,), 1023)  # one whole block, and a started one without an id
    reuse.offer((1,), 1024)  # two whole blocks
    assert reuse.too_few_ids == 1


PROMPTS = st.lists(
    st.tuples(st.lists(st.integers(0, 12), max_size=8, unique=True).map(tuple), st.booleans()),
    max_size=40,
)


@given(PROMPTS, st.integers(0, 12), st.integers(1, 12))
def test_limits_never_help(
    prompts: list[tuple[tuple[int, ...], bool]], room: int, more: int
) -> None:
    """Hit rates are shares; less room, or a cache for each instance, never finds more."""
    small = PrefixReuse(16, {"a": 16 * room, "b": 16 * room})
    large = PrefixReuse(16, {"a": 16 * (room + more), "b": 16 * (room + more)})
    for reuse in (small, large):
        for ids, first in prompts:
            name = "a" if first else "b"
            reuse.offer(ids, 16 * len(ids))
            reuse.send(ids, 16 * len(ids), route=name, instance=name)
    little, much = small.together("ab"), large.together("ab")
    assert (little.kept_hit_tokens or 0) <= (much.kept_hit_tokens or 0) <= much.hit_tokens
    assert much.hit_tokens <= large.in_one.hit_tokens
    assert large.in_one.requests == much.requests == len(prompts)
    for rate in (little.hit_rate, little.kept_hit_rate, much.kept_hit_rate, large.in_one.hit_rate):
        assert rate is None or 0 <= rate <= 1
