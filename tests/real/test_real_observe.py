"""``observe`` beside a real server under a small load: what it says is what was sent."""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from vllm_server import Server, launched, write_model

from vllm_advisor import api

pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore")]

REQUESTS, AT_ONCE, SHARED = 16, 4, 256  # tokens that every prompt begins with
AS_LONG = 3.0  # times what the load took before, and some seconds: how long it is watched


@dataclass(frozen=True)
class Sent:
    """Tokens of one request, as the server counted them."""

    prompt: int
    output: int


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    model = write_model(tmp_path_factory.mktemp("model"))
    with launched(model, "--max-model-len", "4096", "--served-model-name", "tiny") as started:
        started.wait(400)
        yield started


def load(server: Server, requests: int = REQUESTS) -> list[Sent]:
    """A closed loop; every prompt has the same beginning."""
    of = random.Random(8)  # noqa: S311 - lengths
    sizes = [(of.randint(300, 900), of.randint(4, 40)) for _ in range(requests)]

    def ask(size: tuple[int, int]) -> Sent:
        prompt, output = size
        words = [5] * SHARED + [of.randint(6, 1000) for _ in range(prompt - SHARED)]
        body = {
            "model": "tiny",
            "prompt": words,
            "max_tokens": output,
            "ignore_eos": True,
            "temperature": 0,
        }
        request = urllib.request.Request(
            f"http://127.0.0.1:{server.port}/v1/completions",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=120) as answer:
            usage = json.load(answer)["usage"]
        return Sent(prompt=usage["prompt_tokens"], output=usage["completion_tokens"])

    with ThreadPoolExecutor(AT_ONCE) as workers:
        return list(workers.map(ask, sizes))


@pytest.fixture(scope="module")
def observed(server: Server) -> tuple[api.ObserveReport, list[Sent]]:
    """What is observed while the load runs, and the load."""
    began = time.monotonic()
    load(server)
    window = AS_LONG * (time.monotonic() - began) + 5
    sent: list[Sent] = []
    runs = threading.Timer(0.5, lambda: sent.extend(load(server)))
    runs.start()
    report = api.observe(
        f"http://127.0.0.1:{server.port}",
        window=window,
        gpu="l40s",
        model="meta-llama/Llama-3.1-8B-Instruct",
    )
    runs.join()
    return report, sent


def test_what_was_sent_is_what_is_seen(observed: tuple[api.ObserveReport, list[Sent]]) -> None:
    report, sent = observed
    counts = report.seen.counts
    assert len(sent) == REQUESTS
    assert counts.requests == REQUESTS
    assert counts.prompt_tokens.total == sum(one.prompt for one in sent)
    assert counts.output_tokens.total == sum(one.output for one in sent)
    # What runs as vLLM last said it: a request that has ended may still be among it.
    arrived = report.seen.requests_per_second * report.seen.seconds
    assert arrived == pytest.approx(REQUESTS, abs=AT_ONCE)
    assert 1 <= report.seen.in_system.largest <= AT_ONCE
    assert (report.seen.model, report.seen.max_model_len) == ("tiny", 4096)
    assert report.seen.vllm_version is not None
    # The same prompts once more: whole blocks of them were there, of the CPU's 128 tokens each.
    hits = counts.prefix_hits or 0
    assert REQUESTS * SHARED <= hits <= counts.prompt_tokens.total


def test_the_workload_is_the_load(observed: tuple[api.ObserveReport, list[Sent]]) -> None:
    report, sent = observed
    (written,) = yaml.safe_load(report.workload)["classes"]
    prompts = sorted(one.prompt for one in sent)
    outputs = sorted(one.output for one in sent)
    for found, real in ((written["prompt_tokens"], prompts), (written["output_tokens"], outputs)):
        assert found["p50"] == pytest.approx(statistics.median(real), rel=0.35)
        assert found["p95"] == pytest.approx(real[int(0.95 * len(real))], rel=0.35)
        assert found["max"] >= real[-1]
    rate = report.seen.peak_requests_per_second
    assert written["requests_per_second"] == pytest.approx(rate, rel=0.01)
    assert report.changes.feasible
    assert report.changes.gpus_planned == 1
    assert "oversize" in [finding.id for finding in report.findings]


def test_all_since_the_start_is_at_least_that(
    server: Server, observed: tuple[api.ObserveReport, list[Sent]], tmp_path: Path
) -> None:
    file = tmp_path / "workload.yaml"
    run = subprocess.run(
        [
            *(sys.executable, "-m", "vllm_advisor", "observe"),
            *(f"http://127.0.0.1:{server.port}/metrics", "--since-start", "-o", str(file)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert f"{2 * REQUESTS} requests ended" in run.stdout  # the load ran twice
    # The plugin in the server counted the longest lengths exactly.
    longest = max(one.prompt for one in observed[1])
    assert yaml.safe_load(file.read_text())["classes"][0]["prompt_tokens"]["max"] == longest


def test_a_full_server_is_told_from_an_idle_one(tmp_path: Path) -> None:
    """Two sequences at a time: whoever else comes waits."""
    model = write_model(tmp_path / "model")
    args = ("--max-model-len", "4096", "--served-model-name", "tiny", "--max-num-seqs", "2")
    with launched(model, *args) as one:
        one.wait(400)
        runs = threading.Thread(target=load, args=(one, 60))  # longer than it is watched
        runs.start()
        report = api.observe(f"http://127.0.0.1:{one.port}", window=10.0)
        runs.join()
    found = {finding.id: finding for finding in report.findings}
    assert "queueing" in found
    assert "max_num_seqs" in found["queueing"].message
    assert found["queueing"].evidence["running_peak"] <= 2
    # The plugin in the server says what it is.
    (info,) = report.seen.engine_info
    assert (info["max_num_seqs"], info["tensor_parallel_size"], info["gpu"]) == ("2", "1", "")
