"""A real Prometheus reads counted servers, and is asked what the fake one is."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fake_metrics import Counted, answering, vllm

from vllm_advisor.errors import AdvisorError
from vllm_advisor.verify.prometheus import Prometheus
from vllm_advisor.verify.remembering import remembered

pytestmark = pytest.mark.skipif(
    shutil.which("prometheus") is None, reason="no prometheus here (apt-get install prometheus)"
)
CONFIG = """
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: vllm
    static_configs: [{{targets: [{target}], labels: {{namespace: llm}}}}]
"""


@contextmanager
def prometheus(folder: Path, target: str) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    config = folder / "prometheus.yml"
    config.write_text(CONFIG.format(target=target))
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={config}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={address}",
            ],
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            yield f"http://{address}"
        finally:
            process.terminate()
            process.wait(20)


def test_what_a_real_one_remembers(tmp_path: Path) -> None:
    cache = {"kv_cache_size_tokens": "5000", "enable_prefix_caching": "True"}
    engine = Counted(running=3, waiting=1, usage=0.4, cache=cache, longest=(333, 21))
    for _ in range(50):
        engine.request(9000, 900)  # before it is first read: none of what is asked for
    pages = 0

    def page() -> str:
        nonlocal pages
        pages += 1
        if pages > 2:
            engine.request(300, 20)
            engine.hits += 30
        return engine.text()

    with (
        answering(vllm(page)) as server,
        prometheus(tmp_path, server.removeprefix("http://")) as url,
    ):
        asked = Prometheus(url=url, timeout=5, match='namespace="llm"')
        deadline = time.monotonic() + 40
        while pages < 14 and time.monotonic() < deadline:
            time.sleep(0.2)
        with pytest.raises(AdvisorError, match="no server serves"):
            remembered(asked, seconds=60, model="other")
        seen = remembered(asked, seconds=60, model=None)
    assert seen.model == "tiny"
    # One request of 300 and 20 tokens at each reading, however the ends are extrapolated.
    assert seen.counts.requests == pytest.approx(pages - 2, abs=3)
    assert seen.counts.prompt_tokens.mean == pytest.approx(300, rel=0.02)
    assert seen.counts.output_tokens.mean == pytest.approx(20, rel=0.02)
    # Hits began at 0, where Prometheus extrapolates less than it does of what was looked up.
    assert seen.counts.prefix_hit_rate == pytest.approx(0.1, rel=0.08)
    assert 8 <= seen.seconds <= 60
    assert seen.requests_per_second == pytest.approx(1.0, abs=0.4)
    assert seen.in_system.mean == pytest.approx(4)
    (one,) = seen.engines
    assert one.name.endswith("/0")
    assert (one.running.mean, one.waiting.largest, one.kv_cache_usage.largest) == (3, 1, 0.4)
    assert one.kv_cache_tokens == 5000
    assert (seen.longest_prompt, seen.longest_output) == (333, 21)
    assert seen.cache_config["enable_prefix_caching"] == "True"
