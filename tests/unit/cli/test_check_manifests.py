"""Suppressions and fixes in the files of a deployment: YAML keeps its layout, to the byte."""

from __future__ import annotations

import json
from pathlib import Path

from forked_cli import run_cli

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: vllm}
spec:
  replicas: 1
  selector: {matchLabels: {app: vllm}}
  template:
    metadata: {labels: {app: vllm}}
    spec:
      containers:
        - name: vllm
          image: vllm/vllm-openai:v0.33.0   # pinned
          args:
            - --model
            - Qwen/Qwen3-8B
            # vllm-advisor: ignore=CTX001 reason="stretched with YaRN"
            - --max-model-len=131072
            - "--dtype"
            - bf16
            - --enable-prefix-caching=True
            - "--enable-chunked-prefill=False"
"""
COMPOSE = """\
services:
  vllm:
    image: vllm/vllm-openai:v0.33.0
    command: ["Qwen/Qwen3-8B", "--dtype", "bf16", "--max-model-len=131072"]  # vllm-advisor: ignore=CTX001 reason="stretched"
"""


def test_manifests_and_compose_files(tmp_path: Path) -> None:
    texts = {"deploy/vllm.yaml": DEPLOYMENT, "compose/compose.yaml": COMPOSE}
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(text.replace("\n", "\r\n").encode())
    only = ("deploy", "compose/compose.yaml", "--select", "CTX001,FLG,SUP")
    report = json.loads(run_cli("check", *only, "-f", "json", cwd=tmp_path).stdout)
    assert {(s["location"]["file"], s["rule"], s["reason"]) for s in report["suppressed"]} == {
        ("deploy/vllm.yaml", "CTX001", "stretched with YaRN"),
        ("compose/compose.yaml", "CTX001", "stretched"),
    }
    assert {f["rule"] for f in report["findings"]} == {"FLG002", "FLG003"}
    done = run_cli("check", *only, "--fix", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr.splitlines()[0] == "fixed 4 of 4 findings"
    for name, text in texts.items():
        fixed = (
            text.replace("bf16", "bfloat16")
            .replace("caching=True", "caching")
            .replace("--enable-chunked-prefill=False", "--no-enable-chunked-prefill")
        )
        assert (tmp_path / name).read_bytes() == fixed.replace("\n", "\r\n").encode()
