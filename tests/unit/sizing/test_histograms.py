from __future__ import annotations

import math
from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vllm_advisor.sizing.histograms import largest_of, shape_of, split
from vllm_advisor.types.observation import Histogram

EDGES = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, math.inf)


def counted(sizes: list[int], edges: tuple[float, ...] = EDGES) -> Histogram:
    counts = [0.0] * len(edges)
    for size in sizes:
        counts[bisect_left(edges, size)] += 1
    return Histogram(edges=edges, counts=tuple(counts), total=float(sum(sizes)))


def test_edges_have_to_rise_to_infinity() -> None:
    with pytest.raises(ValueError, match="end with infinity"):
        Histogram(edges=(1.0, 2.0), counts=(1.0, 1.0), total=2.0)
    with pytest.raises(ValueError, match="end with infinity"):
        Histogram(edges=(1.0, math.inf), counts=(1.0,), total=2.0)
    with pytest.raises(ValueError, match="rise"):
        Histogram(edges=(2.0, 2.0, math.inf), counts=(1.0, 1.0, 0.0), total=2.0)


def test_nothing_has_no_mean_and_no_shape() -> None:
    nothing = counted([])
    assert nothing.mean is None
    with pytest.raises(ValueError, match="no observations"):
        shape_of(nothing)


def test_the_sum_bounds_the_largest() -> None:
    # Four in (10, 20] that sum to 44: three are above 10, so the largest is below 44 - 30 = 14.
    assert largest_of(counted([11, 11, 11, 11])) == 14
    # They sum to 60: the edge of their bucket, 20, is below 60 - 30 = 30.
    assert largest_of(counted([15, 15, 15, 15])) == 20
    # What is known otherwise is closer than either.
    assert largest_of(counted([15, 15, 15, 15]), most=17) == 17
    # A bound below the bucket contradicts the count, and is not believed.
    assert largest_of(counted([15, 15, 15, 15]), most=9) == 20


def test_the_last_bucket_ends_at_what_is_known_or_at_the_next_edge() -> None:
    many = counted([1500] * 40)
    assert largest_of(many, most=4096) == 4096
    assert largest_of(many) == 2000  # 1, 2, 5, 10: the next after 1,000
    assert largest_of(counted([1500])) == 1500  # one alone is as large as the sum


def test_equal_sizes_are_found_by_their_sum() -> None:
    shape = shape_of(counted([1024] * 100), most=4096)
    # 100 of them sum to 102,400 = 100 * 1024, and each is above 1,000.
    assert 1000 <= shape.quantile(0.5).point <= 1040
    assert shape.quantile(0.95).point <= 1060
    assert shape.mean_up_to() == pytest.approx(1024, rel=0.01)


def test_percentiles_of_an_even_spread() -> None:
    shape = shape_of(counted(list(range(1, 1001))), most=1000)
    assert shape.quantile(0.5).point == pytest.approx(500, rel=0.02)  # an edge: half are below
    assert shape.quantile(0.95).point == pytest.approx(950, rel=0.05)
    assert (shape.quantile(0.95).low, shape.quantile(0.95).high) == pytest.approx((500, 1000))


def test_a_split_divides_its_bucket() -> None:
    histogram = counted(list(range(1, 1001)))
    shape = shape_of(histogram, most=1000)
    low, high = split(histogram, shape, 750)
    assert low.count == pytest.approx(750, rel=0.05)
    assert high.count == pytest.approx(250, rel=0.15)
    assert high.mean == pytest.approx(875, rel=0.08)
    assert split(histogram, shape, 500)[0].count == 500  # an edge: exact
    nothing, everything = split(histogram, shape, 0.1)
    assert nothing.count == pytest.approx(0, abs=0.1)
    assert everything.count == pytest.approx(1000, abs=0.1)


@given(
    st.lists(st.integers(1, 4000), min_size=1, max_size=60),
    st.lists(st.floats(0.01, 1.0), min_size=2, max_size=5),
    st.integers(2, 3000),
)
def test_a_shape_keeps_what_the_counts_say(sizes: list[int], shares: list[float], at: int) -> None:
    histogram = counted(sizes)
    shape = shape_of(histogram, most=4000)
    ordered = sorted(sizes)
    assert shape.largest >= ordered[-1]
    before = 0.0
    for share in sorted(shares):
        found = shape.quantile(share)
        real = ordered[math.ceil(share * len(ordered) - 1e-9) - 1]
        assert found.low - 1e-6 <= real <= found.high + 1e-6
        assert found.low - 1e-6 <= found.point <= found.high + 1e-6
        assert found.point >= before - 1e-9
        before = found.point
    low, high = split(histogram, shape, at)
    assert low.count + high.count == pytest.approx(len(sizes))
    assert low.total + high.total == pytest.approx(sum(sizes))
    assert all(count >= 0 for count in (*low.counts, *high.counts))
    assert low.total >= -1e-6
    assert high.total >= -1e-6
