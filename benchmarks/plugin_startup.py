"""What the plugin adds to the start of ``vllm serve``, on the real vLLM and a tiny model.

    .venv-vllm/bin/python benchmarks/plugin_startup.py [--configurations 7] [--starts 3]

Run with and without it in turn, after one of each that fills caches:

- until vLLM has its configuration, from where the check goes on beside the start: by the clock, and
  CPU time of the front end, which a machine that others use does not blur;
- whole starts, until the server is healthy: by the clock.

Without it means a ``VLLM_PLUGINS`` that names all other plugins. Package and vLLM have their byte
code beside them here, as after ``pip install``. Takes a quarter of an hour on two cores; no part of
``make bench``.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "real"))
from vllm_server import launched, write_model

LIMIT = 0.5  # seconds
GROUPS = ("general", "platform", "io_processor", "stat_logger", "endpoint")
FOUND = {e.name for group in GROUPS for e in entry_points(group=f"vllm.{group}_plugins")}
OTHERS = ",".join(sorted(FOUND - {"advisor"}))
MODES = {"without": {"VLLM_PLUGINS": OTHERS}, "with": {"VLLM_PLUGINS": f"{OTHERS},advisor"}}
CHECKED = re.compile(r"vllm-advisor: checked in ([\d.]+) s")
# vllm serve, but for what comes after its configuration.
CONFIGURE = """
import os, sys, time
sys.argv[0] = "vllm"
from vllm.engine.arg_utils import AsyncEngineArgs
def create_engine_config(self, *args, **kwargs):
    config = super(AsyncEngineArgs, self).create_engine_config(*args, **kwargs)
    print("configured", time.monotonic(), time.process_time(), flush=True)
    os._exit(0)
AsyncEngineArgs.create_engine_config = create_engine_config
from vllm.entrypoints.cli.main import main
main()
"""


def environment(mode: str) -> dict[str, str]:
    """Variables of one run; byte code is written, as it is where vLLM is in use."""
    own = {"PYTHONDONTWRITEBYTECODE": "", "VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1"}
    return own | MODES[mode]


def configure(model: Path, mode: str) -> tuple[float, ...]:
    """Seconds by the clock and of CPU until configured; the check itself comes later."""
    words = ["serve", str(model), "--skip-tokenizer-init", "--max-model-len", "4096"]
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", CONFIGURE, *words],
        env=os.environ | environment(mode),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=600,
    )
    found = re.search(r"configured ([\d.]+) ([\d.]+)", done.stdout)
    if found is None:
        raise SystemExit(f"{mode} it, vLLM was not configured:\n{done.stdout[-4000:]}")
    return float(found[1]) - start, float(found[2])


def start(model: Path, mode: str) -> tuple[float, ...]:
    """Seconds until the server is healthy, and of the check as the plugin says it."""
    began = time.monotonic()
    with launched(model, "--max-model-len", "4096", env=environment(mode)) as server:
        server.wait(600)
        taken = time.monotonic() - began
    said = CHECKED.search(server.log())
    if (mode == "with") != (said is not None):
        raise SystemExit(f"{mode} it, the server was not checked as it should:\n{server.log()}")
    return taken, float(said[1]) if said else 0.0


def medians(
    times: int, run: Callable[[Path, str], tuple[float, ...]], model: Path
) -> dict[str, list[float]]:
    """Medians by mode; the first run of each is not counted."""
    found: dict[str, list[tuple[float, ...]]] = {mode: [] for mode in MODES}
    for number in range(times + 1):
        for mode, rows in found.items():
            row = run(model, mode)
            print("first" if not number else "     ", mode, *(f"{x:.2f}" for x in row), flush=True)
            if number:
                rows.append(row)
    return {
        mode: [statistics.median(column) for column in zip(*rows, strict=True)]
        for mode, rows in found.items()
    }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--configurations", type=int, default=7)
    parser.add_argument("--starts", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        model = write_model(Path(scratch) / "model")
        if asked.configurations:
            found = medians(asked.configurations, configure, model)
            clock, cpu = found["with"]
            print(
                f"until configured: {clock:.2f} s with the plugin, {found['without'][0]:.2f} s "
                f"without ({clock - found['without'][0]:+.2f} s); CPU time {cpu:.2f} s and "
                f"{found['without'][1]:.2f} s ({cpu - found['without'][1]:+.2f} s)."
            )
        if asked.starts:
            found = medians(asked.starts, start, model)
            clock, check = found["with"]
            print(
                f"until healthy: {clock:.1f} s with the plugin, {found['without'][0]:.1f} s "
                f"without ({clock - found['without'][0]:+.1f} s, less than {LIMIT:g} s are "
                f"wanted); the check beside it took {check:.2f} s."
            )


if __name__ == "__main__":
    main()
