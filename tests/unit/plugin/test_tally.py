"""What is counted, and what is said of it."""

from __future__ import annotations

import fake_vllm

from vllm_advisor.plugin.expected import Expected
from vllm_advisor.plugin.tally import Actual, Tally, line, load_verdict, size_verdict


def test_waiting_is_what_vllm_calls_waiting() -> None:
    tally = Tally()
    tally.add(fake_vllm.scheduler_stats(num_waiting_reqs=2, num_skipped_waiting_reqs=3), None)
    assert (tally.waiting, tally.waiting_peak) == (5, 5)


def test_verdicts_of_a_load() -> None:
    planned = Expected(
        by="planned", tokens=1000, max_concurrency=4.0, max_model_len=8192, longest_prompt=500
    )
    actual = Actual(tokens=1000, num_gpu_blocks=10, max_concurrency=4.0)
    assert line(Tally(), actual, planned)[0]
    assert "2 preemptions" in load_verdict(Tally(preemptions=2), actual, planned)[0]
    waits = Tally(running_peak=2, waiting_peak=3, kv_usage_peak=0.1)
    assert "max-num-seqs may be too low" in load_verdict(waits, actual, planned)[0]
    full = Tally(running_peak=4, waiting_peak=3, kv_usage_peak=0.9)
    assert "more than one server holds" in load_verdict(full, actual, planned)[0]
    long = Tally(requests=1, prompt_tokens_max=600)
    assert load_verdict(long, actual, planned) == [
        "a prompt of 600 tokens, planned were 500 at most"
    ]
    short = Tally(requests=50, prompt_tokens_max=400, output_tokens_max=8)
    assert "no request came near max-model-len 8,192" in load_verdict(short, actual, planned)[0]
    assert size_verdict(Actual(tokens=995), planned)[0]
    assert not size_verdict(Actual(tokens=900), planned)[0]
