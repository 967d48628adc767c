"""Groups of layers that share block tables, as vllm/v1/core/kv_cache_planning.py makes them."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction

from vllm_advisor.errors import InfeasibleError, NotModelledError
from vllm_advisor.sizing.kv_cache import (
    CHUNKED,
    CROSS,
    FULL,
    MAMBA,
    MLA,
    SLIDING,
    SLIDING_MLA,
    WINDOWED,
    KVCacheSettings,
    LayerPage,
    page_blocks,
    promoted,
)
from vllm_advisor.units import ceil_div, round_up

Cached = tuple[int, LayerPage]  # a layer's index, and one of its caches


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Caches that use one block table. In a uniform group pages differ in size."""

    members: tuple[Cached, ...]

    @property
    def page(self) -> LayerPage:
        """The first member's page: the others agree in all but size."""
        return self.members[0][1]

    @property
    def page_bytes(self) -> int:
        """Bytes of one block over all members."""
        return sum(page.page_bytes for _, page in self.members)

    @property
    def is_uniform(self) -> bool:
        """Members with different pages (vLLM's UniformTypeKVCacheSpecs)."""
        return len({page for _, page in self.members}) > 1

    def blocks(self, settings: KVCacheSettings, length: int | None = None) -> int:
        """Blocks one request takes."""
        return max(page_blocks(page, settings, length) for _, page in self.members)


def group_layers(caches: tuple[Cached, ...], settings: KVCacheSettings) -> tuple[Group, ...]:
    """Groups in vLLM's order of attempts.

    One type is one group (of mixed page sizes if need be); else pages are unified and types split
    into groups of equal layer count, or packed side by side where the layout is block-outermost.

    Raises:
        InfeasibleError: vLLM refuses the mix without the hybrid manager.
        NotModelledError: vLLM itself has no way to unify these pages.
    """
    kept = list(caches)
    if not kept:
        return ()
    if not settings.hybrid_manager:
        kept = _without_hybrid_manager(kept)
    if _same_type(kept):
        return (Group(members=tuple(kept)),)
    sizes = {page.page_bytes for _, page in kept}
    if settings.block_outermost and len(sizes) > 1:
        return _packed(kept)
    unified = _unified(kept)
    if unified is None:
        return (Group(members=tuple((i, promoted(p)) for i, p in kept)),)
    return _split(unified)


def bytes_per_block(groups: tuple[Group, ...], layers: range, *, block_outermost: bool) -> int:
    """Bytes one block id takes on a stage: the fullest group's layers there, summed."""
    sums = [sum(p.page_bytes for i, p in g.members if i in layers) for g in groups]
    if not block_outermost:
        return max(sums)
    alignment = math.lcm(*(p.alignment for g in groups for _, p in g.members))
    return round_up(max(sums), alignment)


def bytes_per_token(groups: tuple[Group, ...], dcp: int) -> int | None:
    """Bytes per token and rank where that is a constant of the model, else None."""
    kinds = {page.kind for g in groups for _, page in g.members}
    if not groups or kinds & {*WINDOWED, MAMBA, CROSS}:
        return None
    pages = [Fraction(g.page_bytes, g.page.block_size * dcp) for g in groups]
    return math.ceil(sum(pages, Fraction(0)))


def tokens_line(num_blocks: int, per_request: int, max_model_len: int) -> tuple[int, float]:
    """vLLM's log line: (KV cache tokens, maximum concurrency).

    tokens = int(num_blocks / blocks per request x max_model_len), computed in floating point as
    vllm/v1/core/kv_cache_utils.py#get_kv_cache_capacity does, so that even rounding is equal.
    """
    concurrency = num_blocks / per_request
    return int(concurrency * max_model_len), concurrency


def _family(page: LayerPage) -> tuple[object, ...]:
    """Caches of one family need the same number of slots, whatever their pages' size."""
    kind = FULL if page.kind is MLA else page.kind
    return (kind, page.window, page.block_size, page.states)


def _same_type(kept: list[Cached]) -> bool:
    return len({_family(page) for _, page in kept}) == 1


def _without_hybrid_manager(kept: list[Cached]) -> list[Cached]:
    kinds = {page.kind for _, page in kept}
    local = bool(kinds & set(WINDOWED))
    if local and kinds & {FULL, MLA}:
        full = {p.block_size for _, p in kept if p.kind in (FULL, MLA)}
        block = next(iter(full)) if len(full) == 1 else None
        kept = [
            (i, _resized(promoted(p), block) if p.kind in WINDOWED and block else promoted(p))
            for i, p in kept
        ]
    if not _same_type(kept):
        raise InfeasibleError(
            "Failed to promote local KV cache specs to one unified type.",
            where="--disable-hybrid-kv-cache-manager",
            fix="leave the hybrid KV cache manager on for models with recurrent layers",
        )
    return kept


def _resized(page: LayerPage, block_size: int) -> LayerPage:
    """The same entries in blocks of another size."""
    size = page.page_bytes * block_size // page.block_size
    return replace(page, block_size=block_size, page_bytes=size)


def _unified(kept: list[Cached]) -> list[Cached] | None:
    """Bring every page to the largest: longer blocks if they divide, else padding.

    Recurrent and non-MLA attention pages may be padded. Returns ``None`` for the fallback that
    takes windows for full attention beside MLA.
    """
    largest = max(page.page_bytes for _, page in kept)
    out = []
    for index, page in kept:
        one = page
        if page.page_bytes == largest:
            out.append((index, page))
            continue
        ratio, rest = divmod(largest, page.page_bytes)
        if page.kind is MAMBA:
            one = replace(page, page_bytes=largest)
        elif not rest:
            one = replace(page, block_size=page.block_size * ratio, page_bytes=largest)
        elif page.kind not in (MLA, SLIDING_MLA):
            one = replace(page, page_bytes=largest)
        elif _may_fall_back(kept):
            return None
        else:
            raise NotModelledError(
                f"vLLM cannot unify KV cache pages of {page.page_bytes} and {largest} bytes",
                fix="this mix of layers does not start",
            )
        out.append((index, one))
    return out


def _may_fall_back(kept: list[Cached]) -> bool:
    """Windows beside MLA may be taken for full attention (#_try_get_full_allocation_fallback)."""
    kinds = {p.kind for _, p in kept}
    possible = SLIDING in kinds and MLA in kinds and not kinds & {SLIDING_MLA, CHUNKED, MAMBA}
    return possible and _same_type([(i, promoted(p)) for i, p in kept])


def _split(kept: list[Cached]) -> tuple[Group, ...]:
    """Groups of equal layer count: the smallest type's, or the largest's if that is near."""
    types: dict[LayerPage, list[Cached]] = {}
    for index, page in kept:
        types.setdefault(page, []).append((index, page))
    counts = [len(layers) for layers in types.values()]
    size = max(counts) if max(counts) * 2 < min(counts) * 3 else min(counts)
    groups = []
    for layers in types.values():
        number = ceil_div(len(layers), size)
        groups += [Group(members=tuple(layers[start::number])) for start in range(number)]
    return tuple(groups)


def _packed(kept: list[Cached]) -> tuple[Group, ...]:
    """Layers of mixed page sizes side by side in a block (block-outermost layouts).

    Types are buckets; a bucket with equally many layers of every page size repeats a pattern and
    is split into groups of the same number of repeats. Source: #_get_packed_kv_cache_groups.
    """
    buckets: dict[tuple[object, ...], list[Cached]] = {}
    for cached in kept:
        buckets.setdefault(_family(cached[1]), []).append(cached)
    by_size = [_by_page_size(members) for members in buckets.values()]
    balanced = [len({len(names) for names in sizes.values()}) == 1 for sizes in by_size]
    repeats = [max(len(names) for names in sizes.values()) for sizes in by_size]
    floor = max(
        (r for r, sizes, even in zip(repeats, by_size, balanced, strict=True)
         if even and len(sizes) > 1),
        default=0,
    )  # fmt: skip
    each = None
    if floor:
        each = _least_padding([r for r, even in zip(repeats, balanced, strict=True) if even], floor)
    groups = []
    for sizes, even, count in zip(by_size, balanced, repeats, strict=True):
        number = ceil_div(count, each) if even and each else 1
        pattern = list(zip(*sizes.values(), strict=True)) if even else []
        if number == 1:
            members = [c for names in sizes.values() for c in names]
            groups.append(Group(members=tuple(sorted(members, key=lambda c: c[0]))))
            continue
        for start in range(number):
            chosen = [c for repeat in pattern[start::number] for c in repeat]
            groups.append(Group(members=tuple(chosen)))
    return tuple(groups)


def _by_page_size(members: list[Cached]) -> dict[int, list[Cached]]:
    sizes: dict[int, list[Cached]] = {
        size: [] for size in Counter(p.page_bytes for _, p in members)
    }
    for cached in members:
        sizes[cached[1].page_bytes].append(cached)
    return sizes


def _least_padding(counts: list[int], floor: int) -> int:
    """The chunk that pads the counts least, the larger of equals (#_approximate_gcd)."""
    candidates = range(max(1, floor), max(counts) + 1)
    return min(candidates, key=lambda d: (sum(-c % d for c in counts), -d), default=max(1, floor))
