"""How long the command line takes, as whole processes, best of several runs."""

from __future__ import annotations

import subprocess
import sys
import time

COMMANDS = {
    "vllm-advisor --help": (["--help"], 0.35),
    "vllm-advisor plan contract-review": (["plan", "contract-review"], 1.0),
    "vllm-advisor plan contract-review --format json": (
        ["plan", "contract-review", "--format", "json"],
        1.0,
    ),
    "vllm-advisor size llama-3.1-8b-instruct --gpu h100-sxm": (
        ["size", "llama-3.1-8b-instruct", "--gpu", "h100-sxm"],
        1.0,
    ),
}
RUNS = 7


def main() -> None:
    print(f"{'command':58} best s  median s  limit s")
    for name, (words, limit) in COMMANDS.items():
        times = []
        for _ in range(RUNS):
            start = time.perf_counter()
            subprocess.run(
                [sys.executable, "-m", "vllm_advisor", *words], check=True, capture_output=True
            )
            times.append(time.perf_counter() - start)
        times.sort()
        print(f"{name:58} {times[0]:6.2f} {times[RUNS // 2]:9.2f} {limit:8.2f}")


if __name__ == "__main__":
    main()
