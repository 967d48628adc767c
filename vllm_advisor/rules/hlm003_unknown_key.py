"""A key of the values that no template of production-stack's chart reads.

## What it checks
Every key below `servingEngineSpec`, `routerSpec`, `cacheserverSpec` and the other parts of the
values, against those that the templates of vllm-stack 0.1.12 use.

## Why it matters
Helm takes any key and says nothing. The chart ships a schema, but its `.helmignore` keeps it out of
the package. A misspelt setting is simply not set.

## Bad
```yaml
servingEngineSpec:
  modelSpec:
    - name: chat
      repository: vllm/vllm-openai
      tag: v0.33.0
      modelURL: Qwen/Qwen3-8B
      vllmConfig:
        enablePrefixCaching: true
        maxModelLength: 16384
```

## Good
```yaml
servingEngineSpec:
  modelSpec:
    - name: chat
      repository: vllm/vllm-openai
      tag: v0.33.0
      modelURL: Qwen/Qwen3-8B
      vllmConfig:
        enablePrefixCaching: true
        maxModelLen: 16384
```

## Fix
Write the key's name, or put what the chart has no key for into `vllmConfig.extraArgs`.

## References
- https://github.com/vllm-project/production-stack/blob/main/helm/values.schema.json
- https://github.com/vllm-project/production-stack/blob/main/helm/.helmignore
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from vllm_advisor.knowledge.charts import STACK, Chart, ChartKeys, load_chart_keys
from vllm_advisor.parse.yaml_tree import YamlValue
from vllm_advisor.rules.protocol import Fault, SourceSubject, source_rule
from vllm_advisor.rules.stack_values import KIND
from vllm_advisor.types.finding import Severity

_ANY, _EACH, _ITEM = "**", "*", "[]"
_INSIDE_ENGINES = ("modelSpec",)  # fragments of values may begin there


@source_rule(id="HLM003", name="unknown-key", severity=Severity.WARNING)
def check(subject: SourceSubject) -> Iterator[Fault]:
    """Walk the values beside the chart's keys."""
    if subject.deployed.kind != KIND:
        return
    chart = load_chart_keys(STACK)
    engines = chart.keys["servingEngineSpec"]
    for one in subject.deployed.objects:
        known = chart.keys.get(one.kind)
        if one.kind in _INSIDE_ENGINES and not subject.deployed.of_kind("servingEngineSpec"):
            known = engines[one.kind][_ITEM]
        if known is not None:
            yield from _below(one.view, known, chart, one.kind)


def _below(
    view: YamlValue, known: dict[str, ChartKeys], chart: Chart, path: str
) -> Iterator[Fault]:
    if not known or _ANY in known:
        return
    for item in view.items():
        if _ITEM in known:
            yield from _below(item, known[_ITEM], chart, f"{path}[]")
    for entry in view.entries():
        below = known.get(entry.key, known.get(_EACH))
        if below is not None:
            yield from _below(entry, below, chart, f"{path}.{entry.key}")
            continue
        close = get_close_matches(entry.key, list(known), n=1)
        fix = f"leave {entry.key} out, or set it by vllmConfig.extraArgs"
        if close:
            fix = f"write {close[0]} if that is meant, or leave {entry.key} out"
        yield Fault(
            message=f"no template of {chart} reads {path}.{entry.key}",
            location=entry.location,
            fix=fix,
            evidence=(("key", f"{path}.{entry.key}"),),
        )
