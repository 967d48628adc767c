"""How long the command line takes, as whole processes: wall clock, and CPU time of the process.

CPU time (user + system) is what a limit is held against: on a machine that others use, the wall
clock measures them. The best of several runs counts; bytecode is compiled before, as installing
does. Python's own start is the first line.
"""

from __future__ import annotations

import compileall
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

SIZE = ["-m", "vllm_advisor", "size"]
MANY = """
from vllm_advisor import size
for step in range(1000):
    size("llama-3.1-8b-instruct", gpu="h100-sxm", max_model_len=4096 + 16 * step)
"""
COMMANDS = {  # words after the interpreter, and the limit of CPU seconds
    "python -c pass": (["-c", "pass"], None),
    "--help": (["-m", "vllm_advisor", "--help"], 0.15),
    "size llama-3.1-8b-instruct --gpu h100-sxm": (
        [*SIZE, "llama-3.1-8b-instruct", "--gpu", "h100-sxm"],
        0.35,
    ),
    "size deepseek-v3 --gpu h200-sxm --gpu-count 8": (
        [*SIZE, "deepseek-v3", "--gpu", "h200-sxm", "--gpu-count", "8"],
        0.35,
    ),
    "size qwen3-next-80b-a3b-instruct --gpu h200-sxm --gpu-count 2": (
        [*SIZE, "qwen3-next-80b-a3b-instruct", "--gpu", "h200-sxm", "--gpu-count", "2"],
        0.35,
    ),
    "plan contract-review": (["-m", "vllm_advisor", "plan", "contract-review"], 1.0),
    "plan contract-review --format json": (
        ["-m", "vllm_advisor", "plan", "contract-review", "--format", "json"],
        1.0,
    ),
    "1,000 sizes in one process": (["-c", MANY], 2.0),
}
RUNS = 7


def measured(words: list[str]) -> tuple[float, float]:
    """Wall clock and CPU seconds of one process."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [sys.executable, *words],
        check=True,
        capture_output=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    compileall.compile_dir(Path(__file__).parents[1] / "vllm_advisor", quiet=2)
    print(f"{'command':62} best CPU s  best wall s  median wall s  CPU limit s")
    for name, (words, limit) in COMMANDS.items():
        runs = [measured(words) for _ in range(RUNS)]
        walls = sorted(wall for wall, _ in runs)
        print(
            f"{name:62} {min(cpu for _, cpu in runs):10.2f} {walls[0]:12.2f} "
            f"{walls[RUNS // 2]:14.2f} {'' if limit is None else f'{limit:12.2f}'}",
            flush=True,
        )


if __name__ == "__main__":
    main()
