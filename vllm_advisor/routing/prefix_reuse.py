"""How much of the prompts a prefix cache would hold: without limit, and in the planned KV cache."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from vllm_advisor.types.trace import BlockId


class EndlessCache:
    """Keeps every block it has seen."""

    def __init__(self) -> None:
        self._seen: set[BlockId] = set()

    def known_blocks(self, ids: tuple[BlockId, ...]) -> int:
        """Leading blocks that were there before; all of them are from now on."""
        known = next((n for n, each in enumerate(ids) if each not in self._seen), len(ids))
        self._seen.update(ids[known:])
        return known


class LRUCache:
    """Keeps the blocks that were used last; of one prompt, its end goes first, as in vLLM.

    Source: vllm/v1/core/single_type_kv_cache_manager.py#free (blocks are freed in reverse order).
    """

    def __init__(self, blocks: int) -> None:
        self._room = blocks
        self._kept: OrderedDict[BlockId, None] = OrderedDict()

    def known_blocks(self, ids: tuple[BlockId, ...]) -> int:
        """Leading blocks that were still there; the prompt's blocks are the newest from now on."""
        kept = self._kept
        known = next((n for n, each in enumerate(ids) if each not in kept), len(ids))
        for each in reversed(ids):
            kept[each] = None
            kept.move_to_end(each)
        while len(kept) > self._room:
            kept.popitem(last=False)
        return known


@dataclass(slots=True, kw_only=True)
class Reuse:
    """Prompt tokens asked of a cache, and those that it had; ``kept`` is with a limited one."""

    requests: int = 0
    prompt_tokens: int = 0
    hit_tokens: int = 0
    kept_hit_tokens: int | None = None

    @property
    def hit_rate(self) -> float | None:
        """Share of the prompt tokens that are hits without a limit; ``None`` without any."""
        return self.hit_tokens / self.prompt_tokens if self.prompt_tokens else None

    @property
    def kept_hit_rate(self) -> float | None:
        """The same with the limited cache; ``None`` where its size is not known."""
        if self.kept_hit_tokens is None or not self.prompt_tokens:
            return None
        return self.kept_hit_tokens / self.prompt_tokens


@dataclass(slots=True, kw_only=True)
class _Instance:
    endless: EndlessCache = field(default_factory=EndlessCache)
    limited: LRUCache | None = None


class PrefixReuse:
    """Follows the requests of a trace through the cache of each instance.

    Hits are whole leading blocks that the instance has seen before, and never the last token of a
    prompt, which vLLM always computes. Only prompts count whose blocks are known and that are
    sent whole: what passages or a shorter history have in common is not in a trace.

    Args:
        block_tokens: tokens that each block id stands for.
        cache_tokens: KV cache of the instances whose size is known, over all replicas.
    """

    def __init__(self, block_tokens: int, cache_tokens: Mapping[str, int]) -> None:
        self.block_tokens = block_tokens
        self.cache_tokens = cache_tokens
        self.too_few_ids = 0  # requests whose ids do not reach the end of the prompt
        self.in_one = Reuse()  # as if one endless cache saw every request, refused ones too
        self.by_route: dict[str, Reuse] = {}
        self._everything = EndlessCache()
        self._instances: dict[str, _Instance] = {}

    def offer(self, ids: tuple[BlockId, ...], prompt_tokens: int) -> None:
        """A request of the trace, wherever it goes."""
        self.too_few_ids += len(ids) < prompt_tokens // self.block_tokens
        self._count(self.in_one, prompt_tokens, self._everything.known_blocks(ids))

    def send(
        self, ids: tuple[BlockId, ...], prompt_tokens: int, *, route: str, instance: str
    ) -> None:
        """A whole prompt that an instance reads."""
        caches = self._instances.get(instance)
        if caches is None:
            tokens = self.cache_tokens.get(instance)
            limited = None if tokens is None else LRUCache(tokens // self.block_tokens)
            caches = self._instances[instance] = _Instance(limited=limited)
        reuse = self.by_route.setdefault(route, Reuse())
        self._count(reuse, prompt_tokens, caches.endless.known_blocks(ids))
        if caches.limited is not None:
            kept = self._hits(prompt_tokens, caches.limited.known_blocks(ids))
            reuse.kept_hit_tokens = (reuse.kept_hit_tokens or 0) + kept

    def together(self, routes: Iterable[str]) -> Reuse:
        """The sum over routes; that of a limited cache is known if it is for each of them."""
        found = [self.by_route[name] for name in routes if name in self.by_route]
        kept = [each.kept_hit_tokens for each in found]
        known = [each for each in kept if each is not None]
        return Reuse(
            requests=sum(each.requests for each in found),
            prompt_tokens=sum(each.prompt_tokens for each in found),
            hit_tokens=sum(each.hit_tokens for each in found),
            kept_hit_tokens=sum(known) if known and len(known) == len(kept) else None,
        )

    def _count(self, reuse: Reuse, prompt_tokens: int, known_blocks: int) -> None:
        reuse.requests += 1
        reuse.prompt_tokens += prompt_tokens
        reuse.hit_tokens += self._hits(prompt_tokens, known_blocks)

    def _hits(self, prompt_tokens: int, known_blocks: int) -> int:
        return max(0, min(known_blocks * self.block_tokens, prompt_tokens - 1))
