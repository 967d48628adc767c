"""Plans for a rate, replayed request by request at that rate and at half as much again.

A plan that misses a target at the stated rate is too small. One that still meets them all at 1.5
times the rate may be larger than it need be: replicas come in whole numbers and rates are planned
with 20 % headroom, so few replicas may.
"""

from __future__ import annotations

import sys

import yaml

from vllm_advisor import plan

Lengths = tuple[int, int, int]  # p50, p95, max
CHAT: tuple[Lengths, Lengths] = (600, 2000, 6000), (200, 500, 1000)
DOCUMENTS: tuple[Lengths, Lengths] = (4000, 6000, 8000), (300, 600, 1000)
SUMMARIES: tuple[Lengths, Lengths] = (3000, 7000, 12000), (150, 300, 500)
WRITING: tuple[Lengths, Lengths] = (200, 500, 2000), (800, 1500, 3000)
LLAMA = "meta-llama/Llama-3.1-8B-Instruct"

# Model, GPU of which there are 8, lengths, TTFT and time between tokens in ms, requests per second.
CASES = (
    (LLAMA, "h100-sxm", CHAT, 1000, 50, (20, 40, 80)),
    (LLAMA, "l40s", CHAT, 1000, 60, (10, 20, 30)),
    (LLAMA, "h100-sxm", DOCUMENTS, 2000, 80, (10, 20, 30)),
    ("Qwen/Qwen3-32B", "h100-sxm", CHAT, 1000, 50, (10, 20)),
    ("meta-llama/Llama-3.3-70B-Instruct", "h100-sxm", CHAT, 1500, 60, (3, 6)),
    ("Qwen/Qwen3-30B-A3B", "a100-sxm4-80", SUMMARIES, 3000, 100, (5, 10)),
    ("openai/gpt-oss-20b", "h100-sxm", WRITING, 1000, 30, (10, 30)),
)


def spread(lengths: Lengths) -> dict[str, int]:
    return dict(zip(("p50", "p95", "max"), lengths, strict=True))


def main() -> int:
    total = held = spare = 0
    print("model, GPU, requests/s: replicas x GPUs; at the rate; at 1.5 times the rate")
    for model, gpu, (prompt, output), ttft, itl, rates in CASES:
        for rate in rates:
            workload = {
                "model": model,
                "hardware": {"gpu": gpu, "count": 8},
                "vllm_version": "0.33.0",
                "classes": [
                    {
                        "name": "requests",
                        "prompt_tokens": spread(prompt),
                        "output_tokens": spread(output),
                        "requests_per_second": rate,
                        "slo": {"ttft_ms": ttft, "itl_ms": itl},
                    }
                ],
            }
            found = plan("workload.yaml", text=yaml.safe_dump(workload), verify=True).plan
            (instance,) = found.deployment.instances
            meets = any("meets its targets." in note for note in found.notes)
            more = any("meets them too." in note for note in found.notes)
            total, held, spare = total + 1, held + meets, spare + more
            print(
                f"  {model}, {gpu}, {rate}: {instance.replicas} x {instance.gpus}; "
                f"{'meets' if meets else 'MISSES'}; {'meets' if more else 'misses'}",
                flush=True,
            )
    print(
        f"{held} of {total} meet their targets at the rate, "
        f"{total - spare} miss one at 1.5 times the rate"
    )
    return 0 if held == total else 1


if __name__ == "__main__":
    sys.exit(main())
