"""A tool call parser for a format that this model does not write.

## What it checks
Parsers whose format is made of special tokens that one family of models has (OpenAI's Harmony,
Gemma 4, Kimi, DeepSeek, MiniMax) against the model's architecture.

## Why it matters
The server starts, but no tool call is recognised: it comes back as plain text in the answer.

## Bad
```bash
vllm serve Qwen/Qwen3-8B --enable-auto-tool-choice --tool-call-parser openai
```

## Good
```bash
vllm serve openai/gpt-oss-20b --enable-auto-tool-choice --tool-call-parser openai
```

## Fix
The parser that the model's publisher names.

## References
- https://docs.vllm.ai/en/latest/features/tool_calling.html
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.knowledge.version_names import parser_family
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity

_PARSER = "tool_call_parser"


@rule(
    id="FLG007",
    name="parser-of-another-family",
    severity=Severity.ERROR,
    needs=("model",),
    flags=(_PARSER,),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Compare the parser's family with the model's."""
    model, parser = subject.model, subject.args.get(_PARSER)
    if model is None or not parser or not subject.args.get("enable_auto_tool_choice"):
        return
    family = parser_family(str(parser))
    own = model.serving.features.get("tool_calling", {}).get(_PARSER)
    if family is None or own == parser or model.architecture.startswith(family.architectures):
        return
    flag = subject.spelling(_PARSER)
    yield Fault(
        message=f"the parser {parser} reads what {', '.join(family.architectures)} models write, "
        f"and {model.model_id} is {model.architecture}",
        location=subject.place(_PARSER),
        fix=f"{flag} {own}" if own else f"{flag} with the parser that the publisher names",
        evidence=((_PARSER, str(parser)), ("architecture", model.architecture)),
    )
