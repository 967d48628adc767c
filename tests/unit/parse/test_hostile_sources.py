"""Texts that are made to break a reader: numbers and nesting without an end, growth without one."""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Iterator

import pytest
from read_sources_here import read

from vllm_advisor.errors import InputError
from vllm_advisor.parse.kubernetes_semantics.resources import quantity

NINES = "9" * 5000  # more digits than Python makes a number of
DOUBLING = "A=x\n" + 'A="$A$A$A$A$A$A$A$A"\n' * 40
ENV = "".join(f"- {{name: N{n}, value: $(N{n - 1})$(N{n - 1})$(N{n - 1})}}\n" for n in range(1, 60))


@contextlib.contextmanager
def in_time(seconds: float) -> Iterator[None]:
    """CPU time without that of looking for garbage, which the command line does not do."""
    gc.disable()
    started = time.process_time()
    try:
        yield
        assert time.process_time() - started < seconds
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "text",
    [
        "vllm serve m --hf-overrides '{\"a\": 1.5K}'",
        f"vllm serve m --hf-overrides '{{\"a\": {NINES}}}'",
        "vllm serve m --hf-overrides '{\"a\": " + "[" * 20_000 + "}'",
        f"vllm serve m --hf-overrides.a.b {'[' * 20_000}",
        f"vllm serve m --hf-overrides.a.b {NINES}k",
        f"vllm serve m --max-model-len {NINES}k",
        f"vllm serve m --gpu-memory-utilization {NINES}",
        f"vllm serve m --port {NINES}",
        f"services: {{a: {{image: vllm/vllm-openai, deploy: {{replicas: '{NINES}'}}}}}}",
        f"services: {{a: {{image: vllm/vllm-openai, shm_size: '{NINES}g', cpus: '{NINES}'}}}}",
        f"services: {{a: {{image: vllm/vllm-openai, user: '{NINES}:{NINES}', ports: ['{NINES}']}}}}",
        f"services: {{a: {{image: vllm/vllm-openai, stop_grace_period: {NINES}s}}}}",
        f"resources: {{limits: {{memory: '{NINES}', nvidia.com/gpu: {NINES}}}}}",
        f"args: []\nstartupProbe: {{periodSeconds: {NINES}}}",
        f"docker run --memory {NINES} --cpus {NINES} --user {NINES} vllm/vllm-openai",
        f"vllm serve {'$(' * 5000}",
        'vllm serve "' + "${a:-" * 5000,
        f"{DOUBLING}vllm serve $A",
        "A=(x)\n" + 'A=("${A[@]}" "${A[@]}")\n' * 60 + 'vllm serve "${A[@]}"',
        f"vllm serve m --{'a' * 100_000}",
        "vllm serve " + "--aa " * 3000,
        f"args: [--seed, $(N59)]\nenv:\n- {{name: N0, value: xxxxxxxx}}\n{ENV}",
    ],
    ids=lambda text: text[:40],
)  # fmt: skip
def test_it_is_read_in_time(text: str) -> None:
    with in_time(5):
        (server,) = read(text, name="-").instances
    assert sum(len(value) for value in server.command.env.values()) < 20_000_000


def test_numbers_beyond_reason_are_none() -> None:
    assert quantity(NINES) is None
    assert quantity("1" + "0" * 20) == 10**20


@pytest.mark.parametrize(
    "text",
    [
        "\n" * 200_000 + "x",
        " \n" * 100_000 + "x",
        "#\n" * 100_000 + "x",
        "\t" * 200_000 + "x",
        "a: b\n" * 100_000,
        "- a\n" * 100_000,
        "${A:-" * 50_000,
        "command: " + "a b\n  " * 20_000,
        "args:\n- |\n" + "  --seed 1 \\\n" * 12_000,
        "ExecStart=vllm serve m \\\n" + "  --seed 1 \\\n" * 10_000,
    ],
    ids=lambda text: repr(text[:12]),
)
def test_long_texts_are_told_and_read_in_time(text: str) -> None:
    with in_time(8), contextlib.suppress(InputError):
        read(text, name="-")
