"""A tool call parser or reasoning parser that this vLLM version does not have.

## What it checks
`--tool-call-parser` (with `--enable-auto-tool-choice`) and `--reasoning-parser` against the names
that the version registers. Not checked when a plugin file brings parsers of its own.

## Why it matters
vLLM refuses to start: "invalid tool call parser: qwen3 (chose from { ... })".

## Bad
```bash
vllm serve Qwen/Qwen3-8B --enable-auto-tool-choice --tool-call-parser qwen3
```

## Good
```bash
vllm serve Qwen/Qwen3-8B --enable-auto-tool-choice --tool-call-parser hermes
```

## Fix
The parser that the model's publisher names, of those that the version has.

## References
- vllm:0.33.0:vllm/entrypoints/common/cli_args.py#validate_api_server_args
- https://docs.vllm.ai/en/latest/features/tool_calling.html
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from packaging.version import Version

from vllm_advisor.knowledge.version_names import ParserKind, parser_names, parser_spans
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity

_AUTO = "enable_auto_tool_choice"
_FEATURE: dict[ParserKind, str] = {"tool": "tool_calling", "reasoning": "reasoning"}


@rule(
    id="FLG005",
    name="parser-not-known",
    severity=Severity.ERROR,
    flags=("tool_call_parser", "reasoning_parser"),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Look both names up."""
    if subject.args.get(_AUTO) and not subject.args.get("tool_parser_plugin"):
        yield from _judge(subject, "tool", "tool_call_parser")
    if not subject.args.get("reasoning_parser_plugin"):
        yield from _judge(subject, "reasoning", "reasoning_parser")


def _judge(subject: Subject, kind: ParserKind, dest: str) -> Iterator[Fault]:
    name, version = subject.args.get(dest), subject.engine.version
    if not name:
        return
    known = parser_names(kind, version)
    if name in known:
        return
    flag = subject.spelling(dest)
    later = [s.since for s in parser_spans(kind, name) if Version(s.since) > Version(version)]
    message = f"vLLM {version} has no {kind} parser {name}"
    if later:
        message += f"; {later[0]} is the first that has it"
    yield Fault(
        message=message,
        location=subject.place(dest),
        fix=_instead(subject, kind, flag, known) or f"{flag} with one of {', '.join(known)}",
        evidence=((dest, str(name)), ("vllm_version", version)),
    )


def _instead(subject: Subject, kind: ParserKind, flag: str, known: tuple[str, ...]) -> str:
    """The parser of the model's recipe, else one of a close name."""
    dest = "tool_call_parser" if kind == "tool" else "reasoning_parser"
    features = subject.model.serving.features if subject.model else {}
    own = features.get(_FEATURE[kind], {}).get(dest)
    if own in known:
        return f"{flag} {own}"
    close = get_close_matches(str(subject.args.get(dest)), known, n=2)
    return f"{flag} {' or '.join(close)}, as the model's publisher says" if close else ""
