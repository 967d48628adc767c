"""What check says of a text: ids and lines of the findings of a few families."""

from __future__ import annotations

from vllm_advisor.api.checking import CheckReport, check

KUBERNETES, VALUES, COMPOSE = "kubernetes", "helm-production-stack", "compose"
SERVER = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: vllm}
spec:
  selector: {matchLabels: {app: vllm}}
  template:
    metadata: {labels: {app: vllm}}
    spec:
      containers:
        - name: vllm
          image: vllm/vllm-openai:v0.33.0
          args: ["Qwen/Qwen3-8B"]
"""
MODEL = """\
servingEngineSpec:
  strategy: {type: Recreate}
  modelSpec:
    - name: chat
      repository: vllm/vllm-openai
      tag: v0.33.0
      modelURL: Qwen/Qwen3-8B
      requestGPU: 1
"""


def found(text: str, kind: str, family: str) -> list[tuple[str, int]]:
    """Ids and lines of one family's findings, by line."""
    report = checked(text, kind)
    ours = [f for f in report.findings if f.rule.startswith(family)]
    return sorted(((f.rule, f.location.line) for f in ours), key=lambda one: (one[1], one[0]))


def unchecked(text: str, kind: str) -> set[str]:
    """Ids of the rules that could not run."""
    return {one.rule for one in checked(text, kind).not_checked}


def checked(text: str, kind: str) -> CheckReport:
    """The whole report of a text."""
    return check("source.yaml", text=text, kind=kind)
