"""What vLLM calls what it counts, by version: the first name that a server has is taken.

Read from vllm/v1/metrics/loggers.py of 0.8 to 0.33. Until 0.10 the cache had ``gpu_`` before it,
until 0.11 the time between tokens was called the time per output token; for some versions a server
has both names.
"""

from __future__ import annotations

from collections.abc import Iterable

HISTOGRAMS = {
    "prompt_tokens": ("vllm:request_prompt_tokens",),
    "output_tokens": ("vllm:request_generation_tokens",),
    "ttft": ("vllm:time_to_first_token_seconds",),
    "itl": ("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"),
    "e2e": ("vllm:e2e_request_latency_seconds",),
    "queue": ("vllm:request_queue_time_seconds",),
    "step_tokens": ("vllm:iteration_tokens_total",),
}
COUNTERS = {
    "finished": ("vllm:request_success_total",),
    "preemptions": ("vllm:num_preemptions_total",),
    "prefix_queries": ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
    "prefix_hits": ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"),
    "drafts": ("vllm:spec_decode_num_drafts_total",),
}
RUNNING, WAITING = "vllm:num_requests_running", "vllm:num_requests_waiting"
GAUGES = {
    "running": (RUNNING,),
    "waiting": (WAITING,),
    "kv_cache_usage": ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
}
CACHE_CONFIG = "vllm:cache_config_info"
STARTED = "process_start_time_seconds"
# Gauges of the plugin: what an engine is, as labels, and what was seen since the server's start.
ENGINE_INFO = "vllm_advisor:engine_info"
LONGEST_PROMPT = "vllm_advisor:prompt_tokens_max"
LONGEST_OUTPUT = "vllm_advisor:output_tokens_max"
PEAKS = {
    "running": "vllm_advisor:requests_running_peak",
    "waiting": "vllm_advisor:requests_waiting_peak",
    "kv_cache_usage": "vllm_advisor:kv_cache_usage_peak",
}


def present(names: Iterable[str], known: Iterable[str]) -> str | None:
    """The first of the names that is known."""
    known = frozenset(known)
    return next((name for name in names if name in known), None)
