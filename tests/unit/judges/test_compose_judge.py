"""Compose files: the specification's parser refuses what Docker would."""

from __future__ import annotations

import pytest
from judges.compose import compose_problems, docker_problems

GOOD = """
services:
  vllm:
    image: vllm/vllm-openai:v0.33.0
    command: ["--model", "Qwen/Qwen3-8B", "--max-model-len", "32768", "$${HOME}"]
    environment: {HF_HOME: /weights}
    ports: ["127.0.0.1:8000:8000"]
    volumes: ["weights:/weights"]
    secrets: [hf-token]
    shm_size: 8gb
    stop_grace_period: 100s
    restart: unless-stopped
    deploy:
      resources:
        reservations:
          devices: [{driver: nvidia, count: 2, capabilities: [gpu]}]
    healthcheck:
      test: ["CMD", "curl", "--fail", "http://127.0.0.1:8000/health"]
      interval: 10s
      start_period: 30m
      retries: 3
  proxy:
    image: nginx:1.31.3
    depends_on: {vllm: {condition: service_healthy}}
volumes: {weights: {}}
secrets: {hf-token: {environment: HF_TOKEN}}
"""


@pytest.mark.parametrize("word", ["$${HOME}", "${MODEL:?which model}", "$MODEL", "${A:-b}", "US$$"])
def test_a_good_file_passes(word: str) -> None:
    assert compose_problems(GOOD.replace("$${HOME}", word)) == []


@pytest.mark.parametrize(
    ("written", "instead", "expected"),
    [
        ("shm_size: 8gb", "shm-size: 8gb", "shm-size"),
        ("shm_size: 8gb", "shm_size: [8]", "shm_size"),
        ("interval: 10s", "interval: often", "interval"),
        ("capabilities: [gpu]", "capability: [gpu]", "capabilities"),
        ("count: 2", "count: two", "count"),
        ("8000:8000", "8000:80000", "ports[0]"),
        ("volumes: {weights: {}}", "", "no volume weights"),
        ("secrets: {hf-token: {environment: HF_TOKEN}}", "", "secret `hf-token`"),
        ("depends_on: {vllm:", "depends_on: {engine:", "no service engine"),
        ("condition: service_healthy", "condition: healthy", "condition"),
        ("restart: unless-stopped", "restart: sometimes", "restart"),
        ("$${HOME}", "$(HOME)", "invalid interpolation"),
        ("$${HOME}", "${1}", "invalid interpolation"),
        ("HF_HOME: /weights", "HF_HOME: [a]", "environment"),
        ("  vllm:\n    image", "  vllm:\n   - image", ""),
    ],
)  # fmt: skip
def test_bad_files(written: str, instead: str, expected: str) -> None:
    assert GOOD.count(written) == 1
    (problem,) = compose_problems(GOOD.replace(written, instead))
    assert expected in problem


def test_docker_agrees_where_it_is() -> None:
    found = docker_problems(GOOD)
    if found is None:
        pytest.skip("no docker with the compose plugin here")
    assert found == []
    assert docker_problems(GOOD.replace("shm_size", "shm-size"))
