"""How long ``check`` takes over a folder of 200 manifests, with lengths of their own.

The manifests are those that the project renders for its golden plans, so they are of a usual size
(10 to 20 KB each) and everything in them is looked at: models, GPUs, versions, figures, all rules.
CPU time is what the limit is held against: on a machine that others use, the wall clock measures
them.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from vllm_advisor.api.checking import check

KEPT = Path(__file__).parents[1] / "tests" / "golden_targets" / "kubernetes"
COUNT = 200
MOST_SECONDS = 3.0


def write_manifests(folder: Path, count: int = COUNT) -> int:
    """Write manifests, each into a folder of its own; returns their bytes."""
    texts = [path.read_text("utf-8") for path in sorted(KEPT.glob("*/*-*.yaml"))]
    size = 0
    for number in range(count):
        text = texts[number % len(texts)].replace('"7168"', f'"{7168 - 16 * (number % 100)}"')
        own = folder / f"{number:03}"
        own.mkdir()
        size += (own / "server.yaml").write_text(text, encoding="utf-8")
    return size


def seconds(folder: Path) -> tuple[float, float, int]:
    """CPU and wall-clock time of one call, and how many servers it found."""
    cpu, wall = time.process_time(), time.perf_counter()
    report = check(folder)
    return time.process_time() - cpu, time.perf_counter() - wall, len(report.instances)


def main() -> None:
    """Print the figure."""
    with tempfile.TemporaryDirectory() as scratch:
        size = write_manifests(Path(scratch))
        cpu, wall, servers = seconds(Path(scratch))
    print(
        f"check: {COUNT} manifests ({size / 1e6:.1f} MB, {servers} servers) in {cpu:.2f} s of CPU "
        f"time, {wall:.2f} s by the clock; at most {MOST_SECONDS:.0f} s are wanted."
    )


if __name__ == "__main__":
    main()
