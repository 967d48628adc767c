"""How far percentiles of real request lengths are from what vLLM's own histograms leave of them.

Each trace is counted in vLLM's buckets with its exact sum, as ``/metrics`` has it, and its
percentiles are read back as ``vllm-advisor observe`` does. Beside them: a straight line between the
edges of the bucket, which is what Prometheus' ``histogram_quantile`` does. Other traces than the
bundled heads may be named.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path

from vllm_advisor.parse.trace import Trace
from vllm_advisor.sizing.histograms import shape_of
from vllm_advisor.types.observation import Histogram

TRACES = Path(__file__).resolve().parents[1] / "tests" / "data" / "traces"
LONGEST = 131_072
SHARES = (0.5, 0.95, 0.99)


def edges_1_2_5(longest: int) -> tuple[float, ...]:
    """vLLM's edges of buckets of tokens, as it makes them for a model of this length."""
    found = [float(step * 10**power) for power in range(len(str(longest))) for step in (1, 2, 5)]
    return (*(edge for edge in found if edge <= longest), math.inf)


def counted(sizes: Sequence[int], edges: tuple[float, ...]) -> Histogram:
    """The sizes in buckets."""
    counts = [0.0] * len(edges)
    for size in sizes:
        counts[bisect_left(edges, size)] += 1
    return Histogram(edges=edges, counts=tuple(counts), total=float(sum(sizes)))


def straight(histogram: Histogram, share: float) -> float:
    """Prometheus' percentile."""
    rank, below, low = share * histogram.count, 0.0, 0.0
    for edge, count in zip(histogram.edges, histogram.counts, strict=True):
        if count and below + count >= rank:
            return low if math.isinf(edge) else low + (edge - low) * (rank - below) / count
        below, low = below + count, edge
    return low


def main() -> int:
    """Print a row for each percentile of each trace; fail where one is out of its bucket."""
    print(f"{'trace':36} {'':>4} {'real':>8} {'ours':>8} {'':>6} {'straight line':>14}")
    ours, others, outside = [], [], 0
    for file in map(Path, sys.argv[1:] or sorted(TRACES.glob("*_head.*"))):
        requests = list(Trace(str(file)))
        sizes = {
            "prompts": sorted(r.prompt_tokens for r in requests),
            "outputs": sorted(r.output_tokens for r in requests if r.output_tokens),
        }
        for what, values in sizes.items():
            histogram = counted(values, edges_1_2_5(LONGEST))
            shape = shape_of(histogram, most=LONGEST)
            for share in SHARES:
                real = values[math.ceil(share * len(values)) - 1]
                found = shape.quantile(share)
                line = straight(histogram, share)
                outside += not found.low <= real <= found.high
                ours.append(abs(found.point / real - 1))
                others.append(abs(line / real - 1))
                print(
                    f"{file.stem[:26]:26} {what:9} {f'p{share * 100:.0f}':>4} {real:8,} "
                    f"{found.point:8,.0f} {found.point / real - 1:+6.0%} {line:8,.0f} "
                    f"{line / real - 1:+6.0%}"
                )
    print(f"mean error: ours {sum(ours) / len(ours):.1%}, line {sum(others) / len(others):.1%}")
    print(f"percentiles outside of the bounds that are stated: {outside}")
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main())
