"""Prefill servers have more tensor parallel ranks than decode servers.

## What it checks
The tensor parallel sizes of the prefill and decode parts of one service (`prefill` and `decode` of
llm-d's values, `prefill` of an LLMInferenceService). An error up to vLLM 0.13, a warning where the
version is not known; from 0.14 on the NIXL connector takes most such pairs.

## Why it matters
Up to 0.13 the NIXL connector of a decode server stops at the first request: "Decode TP cannot be
smaller than prefill TP".

## Bad
```yaml
kind: LLMInferenceService
metadata: {name: server}
spec:
  model: {uri: "hf://Qwen/Qwen2.5-14B-Instruct", name: chat}
  parallelism: {tensor: 1}
  template: {containers: [{name: main, image: "vllm/vllm-openai:v0.12.0"}]}
  prefill:
    parallelism: {tensor: 4}
    template: {containers: [{name: main, image: "vllm/vllm-openai:v0.12.0"}]}
```

## Good
```yaml
kind: LLMInferenceService
metadata: {name: server}
spec:
  model: {uri: "hf://Qwen/Qwen2.5-14B-Instruct", name: chat}
  parallelism: {tensor: 4}
  template: {containers: [{name: main, image: "vllm/vllm-openai:v0.12.0"}]}
  prefill:
    parallelism: {tensor: 1}
    template: {containers: [{name: main, image: "vllm/vllm-openai:v0.12.0"}]}
```

## Fix
Decode at least as many ranks as prefill, one a multiple of the other.

## References
- https://github.com/llm-d/llm-d/issues/394
- vllm:0.12.0:vllm/distributed/kv_transfer/kv_connector/v1/nixl_connector.py
"""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from vllm_advisor.parse.kubernetes.objects import LLM_SERVICE
from vllm_advisor.rules.protocol import Fault, SourceSubject, Subject, source_rule
from vllm_advisor.types.finding import Severity

_SUPPORTED = Version("0.14.0")  # read in the sources: 0.13.0 asserts, 0.14.0 does not


@source_rule(id="K8S022", name="pd-prefill-tp-above-decode-tp", severity=Severity.ERROR)
def check(subject: SourceSubject) -> Iterator[Fault]:
    """Compare the sizes of both parts."""
    version = next((v for one in subject.subjects if (v := _version(one)) is not None), None)
    if version is not None and version >= _SUPPORTED:
        return
    for one in subject.deployed.objects:
        for view in (one.view, one.view.at("spec")):
            prefill = view.at("prefill", "parallelism", "tensor").placed_integer()
            decode = view.at("decode", "parallelism", "tensor").placed_integer()
            if decode is None and one.kind == LLM_SERVICE:
                decode = view.at("parallelism", "tensor").placed_integer()
            if prefill is None or decode is None or prefill.value <= decode.value:
                continue
            yield Fault(
                message=f"prefill has {prefill.value} tensor parallel ranks, decode only "
                f"{decode.value}: NIXL of vLLM before {_SUPPORTED} refuses that",
                location=prefill.location,
                fix=f"tensor: {prefill.value} or more for decode, or {decode.value} for prefill, "
                f"or vLLM {_SUPPORTED}",
                evidence=(("prefill", prefill.value), ("decode", decode.value)),
                severity=Severity.WARNING if version is None else None,
            )


def _version(subject: Subject) -> Version | None:
    stated = subject.instance.vllm_version if subject.instance else None
    return Version(stated.value) if stated else None
