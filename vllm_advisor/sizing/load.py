"""What traffic asks of a KV cache: requests at once, and the blocks they take."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from vllm_advisor.sizing.capacity import CacheLayout
from vllm_advisor.sizing.prefix_cache import shared_prefix_blocks
from vllm_advisor.types.source import Assumption
from vllm_advisor.types.workload import RequestClass
from vllm_advisor.units import ceil_div

# Time a request is expected to take where the workload states no target (milliseconds).
_ASSUMED_TTFT_MS = 2_000
_ASSUMED_ITL_MS = 40
TIME_IN_SYSTEM = ".time-in-system"  # end of the id of an assumption of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Equal requests in the system at once; ``shared`` are first tokens that all of them have."""

    tokens: int
    at_once: int
    shared: int = 0


def blocks_needed(layout: CacheLayout, loads: Iterable[Load], engines: int) -> int:
    """Blocks one engine needs: its share of each load, shared prefixes held once.

    vLLM sends a request to the engine with the fewest waiting and running ones
    (vllm/v1/engine/core_client.py#DPLBAsyncMPClient.get_core_engine_for_request).
    """
    needed = 1  # the null block
    for load in loads:
        each = layout.request_blocks(load.tokens)
        once = shared_prefix_blocks(layout, load.shared)
        needed += once + ceil_div(load.at_once, engines) * (each - once)
    return needed


def requests_at_once(request: RequestClass) -> tuple[int, str, tuple[Assumption, ...]]:
    """Requests in the system at once: given, or Little's law over the time targets.

    Returns:
        The number, how it was come by, and what had to be assumed for it.
    """
    if request.concurrent_requests is not None:
        return request.concurrent_requests, "as stated in the workload", ()
    rate = request.requests_per_second or 0.0
    slo = request.slo
    notes: tuple[Assumption, ...] = ()
    if slo.e2e_ms is not None:
        seconds = slo.e2e_ms / 1000
        basis = "the end-to-end target"
    else:
        ttft = slo.ttft_ms if slo.ttft_ms is not None else _ASSUMED_TTFT_MS
        itl = slo.itl_ms if slo.itl_ms is not None else _ASSUMED_ITL_MS
        seconds = (ttft + itl * request.output_tokens.p50) / 1000
        basis = "TTFT + ITL x median output"
        if slo.ttft_ms is None or slo.itl_ms is None:
            notes = (
                Assumption(
                    id=f"{request.name}{TIME_IN_SYSTEM}",
                    text=f"class {request.name}: a request is taken to stay {seconds:.1f} s "
                    f"(TTFT {ttft:g} ms, {itl:g} ms per output token; what the workload does not "
                    "state is assumed)",
                ),
            )
    text = f"ceil({rate:g} requests/s x {seconds:.2f} s), Little's law over {basis}"
    return max(1, math.ceil(rate * seconds)), text, notes
