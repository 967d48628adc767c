"""A vLLM server that only counts: its ``/metrics``, as vLLM of a version writes them."""

from __future__ import annotations

import json
import math
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKENS = tuple(float(step * 10**power) for power in range(5) for step in (1, 2, 5))
SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
STEPS = (1.0, 8.0, 64.0, 512.0, 2048.0, 8192.0)


@dataclass(kw_only=True)
class Counted:
    """What one engine counted; ``old`` has the names of vLLM 0.8."""

    model: str = "tiny"
    engine: str = "0"
    old: bool = False
    running: float = 0
    waiting: float = 0
    usage: float = 0.0
    preemptions: int = 0
    queries: int = 0
    hits: int = 0
    drafts: int = 0
    started: float | None = None
    cache: dict[str, str] = field(default_factory=dict)
    longest: tuple[int, int] | None = None  # as the plugin counts them
    info: dict[str, str] = field(default_factory=dict)  # what the plugin says of the engine
    peaks: dict[str, float] = field(default_factory=dict)
    ended: Counter[str] = field(default_factory=Counter)
    sizes: dict[str, list[float]] = field(default_factory=dict)

    def request(
        self,
        prompt: int,
        output: int,
        *,
        ttft: float = 0.2,
        itl: float | Sequence[float] = 0.02,
        queue: float = 0.001,
        reason: str = "stop",
    ) -> None:
        """A request that ended."""
        times = [itl] * (output - 1) if isinstance(itl, float) else list(itl)
        self.ended[reason] += 1
        self.queries += prompt
        for name, values in {
            "request_prompt_tokens": [prompt],
            "request_generation_tokens": [output],
            "time_to_first_token_seconds": [ttft],
            "inter_token_latency_seconds": times,
            "e2e_request_latency_seconds": [ttft + sum(times)],
            "request_queue_time_seconds": [queue],
            "iteration_tokens_total": [prompt, *[1] * len(times)],
        }.items():
            self.sizes.setdefault(name, []).extend(map(float, values))

    def text(self) -> str:
        """The page."""
        lines = []
        if self.started is not None:
            lines.append(f"process_start_time_seconds {self.started}")
        gpu = "gpu" if self.old else "kv"
        for name, value in {
            "num_requests_running": self.running,
            "num_requests_waiting": self.waiting,
            f"{gpu}_cache_usage_perc": self.usage,
            "num_preemptions_total": self.preemptions,
            f"{'gpu_' if self.old else ''}prefix_cache_queries_total": self.queries,
            f"{'gpu_' if self.old else ''}prefix_cache_hits_total": self.hits,
        }.items():
            lines.append(self._line(name, value))
        if self.drafts:
            lines.append(self._line("spec_decode_num_drafts_total", self.drafts))
        lines += [
            self._line("request_success_total", count, finished_reason=reason)
            for reason, count in self.ended.items()
        ]
        for name in (
            "request_prompt_tokens",
            "request_generation_tokens",
            "time_to_first_token_seconds",
            "inter_token_latency_seconds",
            "e2e_request_latency_seconds",
            "request_queue_time_seconds",
            "iteration_tokens_total",
        ):
            lines += self._histogram(name, self.sizes.get(name, []))
        if self.cache:
            labels = ",".join(f'{key}="{value}"' for key, value in self.cache.items())
            lines.append(f'vllm:cache_config_info{{engine="{self.engine}",{labels}}} 1.0')
        if self.longest:
            for name, tokens in zip(("prompt", "output"), self.longest, strict=True):
                lines.append(self._line(f"{name}_tokens_max", tokens, space="vllm_advisor"))
        if self.info:
            lines.append(self._line("engine_info", 1, space="vllm_advisor", **self.info))
        lines += [self._line(k, v, space="vllm_advisor") for k, v in self.peaks.items()]
        return "\n".join(["# HELP made for tests", *lines, ""])

    def _histogram(self, name: str, values: Sequence[float]) -> Iterator[str]:
        if self.old and name == "inter_token_latency_seconds":
            name = "time_per_output_token_seconds"
        edges = (*(SECONDS if "seconds" in name else STEPS if "iter" in name else TOKENS), math.inf)
        counts = [0] * len(edges)
        for value in values:
            counts[bisect_left(edges, value)] += 1
        for i, edge in enumerate(edges):
            le = "+Inf" if math.isinf(edge) else str(edge)
            yield self._line(f"{name}_bucket", sum(counts[: i + 1]), le=le)
        yield self._line(f"{name}_count", len(values))
        yield self._line(f"{name}_sum", math.fsum(values))

    def _line(self, name: str, value: float, *, space: str = "vllm", **labels: str) -> str:
        given = {"engine": self.engine, "model_name": self.model, **labels}
        words = ",".join(f'{key}="{text}"' for key, text in given.items())
        return f"{space}:{name}{{{words}}} {float(value)}"


Answer = tuple[int, Any]


@contextmanager
def answering(answer: Callable[[str], Answer]) -> Iterator[str]:
    """A server on loopback; ``answer`` gets a path and gives status and body. Yields its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = answer(self.path)
            raw = (body if isinstance(body, str) else json.dumps(body)).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def vllm(pages: Callable[[], str], *, length: int | None = 4096, root: str = "tiny") -> Callable:
    """Answers of a vLLM server whose ``/metrics`` are ``pages()``, each time anew."""

    def answer(path: str) -> Answer:
        if path == "/metrics":
            return 200, pages()
        if path == "/v1/models":
            return 200, {"data": [{"id": "tiny", "root": root, "max_model_len": length}]}
        if path == "/version":
            return 200, {"version": "0.32.0+cpu"}
        return 404, {"detail": "Not Found"}

    return answer
