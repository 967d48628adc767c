"""observe(): what running servers do, as a workload, and what a plan for it would change."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from vllm_advisor.api.observe_report import ObserveReport
from vllm_advisor.api.observed_changes import (
    Changes,
    changes_of,
    gpu_of,
    gpus_of,
    not_planned,
    says_gpus,
)
from vllm_advisor.api.planning import plan
from vllm_advisor.api.writing import write_text
from vllm_advisor.decide.observed_classes import observed_traffic
from vllm_advisor.decide.observed_load import load_findings, percentile_ms
from vllm_advisor.errors import AdvisorError, InputError, UnknownFactError
from vllm_advisor.knowledge.gpus import find_gpu
from vllm_advisor.render.observed_workload import workload_text
from vllm_advisor.types.observation import Histogram, Observed
from vllm_advisor.types.workload import SLO
from vllm_advisor.verify.address import api_key, extra_headers, server_url
from vllm_advisor.verify.client import OpenAIClient
from vllm_advisor.verify.prometheus import Prometheus
from vllm_advisor.verify.remembering import remembered
from vllm_advisor.verify.watching import read_server, watch

WATCHED = 60.0  # seconds, of a server
REMEMBERED = 3600.0  # seconds back, of a Prometheus
_ENDINGS = ("/metrics", "/api/v1", "/graph", "/query", "/v1")
_FIX = "give the address of vLLM itself (http://HOST:8000), or of a Prometheus that reads it"


def observe(
    url: str,
    *,
    window: float | None = None,
    since_start: bool = False,
    gpu: str | None = None,
    gpu_count: int | None = None,
    model: str | None = None,
    served_model: str | None = None,
    vllm_version: str | None = None,
    match: str = "",
    ttft_ms: float | None = None,
    itl_ms: float | None = None,
    e2e_ms: float | None = None,
    keep_latency: bool = False,
    api_key_env: str | None = None,
    headers: tuple[str, ...] = (),
    timeout: float = 30.0,
    said: Callable[[str], None] = lambda _: None,
) -> ObserveReport:
    """Read what servers do, say what is wrong with it, and plan anew for it.

    Args:
        url: of a vLLM server, whose ``/metrics`` is read for some time, or of a Prometheus.
        window: seconds: how long to watch a server (60), or how far to look back in Prometheus
            (3600).
        since_start: of a server, all that it counted since its start instead.
        gpu: GPU that serves now, for the plan; else the one that the plugin names in the metrics.
        gpu_count: how many of them, over all replicas; else as many as the plugin says, and one
            for each engine where it says nothing.
        model: Hub id, bundled name or folder to size; else what the server was started with.
        served_model: name of the model, where Prometheus knows servers of several.
        vllm_version: release to plan for; else the server's.
        match: label matchers that choose servers in Prometheus (``namespace="llm"``).
        ttft_ms: target at the 95th percentile, as the two that follow.
        itl_ms: target of the time between two tokens.
        e2e_ms: target of the time to the last token.
        keep_latency: what is not given as a target is what is seen now.
        api_key_env: environment variable with the API key.
        headers: ``NAME=VALUE`` words that go with every request.
        timeout: seconds for a request.
        said: told what goes on.

    Raises:
        InputError: an argument is wrong, or no request ended in that time.
        UnknownFactError: nothing answers, or it is neither vLLM nor a Prometheus that knows one.
    """
    stated = None if gpu is None else find_gpu(gpu)
    seen = _seen(
        _address(url),
        window=window,
        since_start=since_start,
        served_model=served_model,
        match=match,
        api_key_env=api_key_env,
        headers=extra_headers(headers),
        timeout=timeout,
        said=said,
    )
    given = SLO(ttft_ms=ttft_ms, itl_ms=itl_ms, e2e_ms=e2e_ms)
    traffic = observed_traffic(seen, slo=_targets(seen, given, keep=keep_latency))
    accelerator = stated or gpu_of(seen)
    used = gpu_count or gpus_of(seen)
    known = model or seen.served_from or seen.model
    release = vllm_version or _release(seen.vllm_version)
    text = workload_text(
        seen,
        traffic,
        model=known,
        gpu=accelerator.id if accelerator else None,
        gpu_count=used,
        vllm_version=release,
    )
    return ObserveReport(
        seen=seen,
        traffic=traffic,
        findings=load_findings(seen, slo=given),
        workload=text,
        changes=_changes(seen, text, gpus=used, assumed=gpu_count is None and not says_gpus(seen))
        if accelerator
        else not_planned(
            "vLLM's metrics do not say which GPUs serve",
            "--gpu NAME --gpu-count N, or the plugin in the server, which says it",
        ),
    )


def write_workload(report: ObserveReport, path: str | Path, *, overwrite: bool = False) -> None:
    """Write the workload file, or nothing.

    Raises:
        OutputError: it cannot be written, or is there with other content.
    """
    write_text(report.workload, Path(path), overwrite=overwrite)


def _seen(
    address: str,
    *,
    window: float | None,
    since_start: bool,
    served_model: str | None,
    match: str,
    api_key_env: str | None,
    headers: Mapping[str, str],
    timeout: float,
    said: Callable[[str], None],
) -> Observed:
    """What the server or the Prometheus behind the address says."""
    asked = Prometheus(url=address, timeout=timeout, match=match, headers=headers)
    first = read_server(address, timeout=timeout, headers=headers)
    if first is not None:
        if match or served_model:
            raise InputError(
                "this is a vLLM server itself: there are no others to choose from",
                where="--match" if match else "--served-model",
                fix="leave it out, or give the address of Prometheus",
            )
        client = OpenAIClient(
            base=f"{address}/v1", timeout=timeout, key=api_key(api_key_env), headers=headers
        )
        seconds = None if since_start else window or WATCHED
        return watch(first, url=address, seconds=seconds, client=client, said=said)
    if not asked.answers():
        raise UnknownFactError(
            "neither vLLM's metrics nor a Prometheus are behind this address",
            where=address,
            fix=_FIX,
        )
    if since_start:
        raise InputError(
            "a Prometheus knows no start; it looks back over a time",
            where="--since-start",
            fix="--window 24h",
        )
    return remembered(asked, seconds=window or REMEMBERED, model=served_model)


def _address(url: str) -> str:
    """The server's address, whichever of its pages was given."""
    address = server_url(url, option="URL")
    for ending in _ENDINGS:
        address = address.removesuffix(ending)
    return address.rstrip("/")


def _targets(seen: Observed, given: SLO, *, keep: bool) -> SLO:
    """The targets that are given; what is seen now for the others, if that is to be kept."""
    if not keep:
        return given
    counts = seen.counts

    def now(target: float | None, histogram: Histogram | None) -> float | None:
        found = percentile_ms(histogram, 0.95)
        return target if target is not None or not found else float(f"{found:.3g}")

    return SLO(
        ttft_ms=now(given.ttft_ms, counts.ttft),
        itl_ms=now(given.itl_ms, counts.itl),
        e2e_ms=now(given.e2e_ms, counts.e2e),
    )


def _release(version: str | None) -> str | None:
    """The release that a server's version is of: without what a build adds."""
    match = re.match(r"\d+\.\d+\.\d+", version or "")
    return match[0] if match else None


def _changes(seen: Observed, workload: str, *, gpus: int, assumed: bool) -> Changes:
    """A plan for the workload beside what runs; why there is none is no failure of observing."""
    try:
        report = plan("observed.yaml", text=workload)
    except AdvisorError as error:
        return not_planned(
            f"{error.what} ({error.where})" if error.where else error.what, error.fix
        )
    return changes_of(report.plan, seen, gpus=gpus, assumed=assumed)
