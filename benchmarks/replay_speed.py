"""Seconds that a replay of 100,000 requests takes, and the steady state held against it.

Differences are simulated / formula - 1, of mean times and of the requests served per second.
"""

from __future__ import annotations

import time

from replay_stations import STATIONS, saturation, station

from vllm_advisor.sizing.arrivals import around, poisson
from vllm_advisor.sizing.replay import replay
from vllm_advisor.sizing.simulation import simulate
from vllm_advisor.sizing.steady_state import Served, closed_loop, open_loop
from vllm_advisor.types.replay import Replayed

REQUESTS = 100_000
LIMIT = 20.0  # seconds
SHARES = (0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9)  # of the rate at which the formula saturates
USERS = (1, 8, 32, 64, 128, 256)
PROMPT, OUTPUT = 1000, 300
PROMPTS, OUTPUTS = around(PROMPT, 10 * PROMPT), around(OUTPUT, 10 * OUTPUT)


def line(load: str, formula: Served, seen: Replayed) -> str:
    tpot = seen.tpot
    assert tpot is not None  # noqa: S101 - answers have more than one token
    return (
        f"  {load:12} {formula.running:7.1f} {seen.ttft.mean / formula.ttft_steady - 1:+7.1%}"
        f" {seen.ttft.p90 / formula.ttft_at(0.9) - 1:+7.1%} {tpot.mean / formula.tpot - 1:+7.1%}"
        f" {seen.steady_requests_per_second / formula.requests_per_second - 1:+7.1%}"
        f" {seen.preemptions:6}"
    )


def main() -> None:
    fast = station("qwen3-32b", "h100-sxm", 2, PROMPT, OUTPUT)
    load = poisson(0.8 * saturation(fast), PROMPT, OUTPUT, REQUESTS)
    start = time.process_time()
    seen = replay(fast, load)
    print(
        f"{REQUESTS:,} requests, {seen.running.mean:.0f} at once, {seen.steps:,} steps: "
        f"{time.process_time() - start:.1f} CPU s (limit {LIMIT:g})"
    )
    for name, gpu, gpus in STATIONS:
        engine = station(name, gpu, gpus, PROMPT, OUTPUT)
        most = saturation(engine)
        print(f"\n{name} on {gpus} x {gpu}: saturated at {most:.2f} requests/s")
        print("  load         running    TTFT TTFT p90   TPOT    rate preemptions")
        for share in SHARES:
            rate = share * most
            seen = simulate(engine, prompt=PROMPTS, output=OUTPUTS, requests_per_second=rate)
            print(line(f"{share:.0%}", open_loop(engine, rate), seen), flush=True)
        for users in USERS:
            seen = simulate(
                engine,
                prompt=PROMPTS,
                output=OUTPUTS,
                concurrency=users,
                requests=max(500, 20 * users),
            )
            print(line(f"{users} users", closed_loop(engine, users), seen), flush=True)


if __name__ == "__main__":
    main()
