"""`--disable-sliding-window` cuts the context down to the window.

## What it checks
A model with sliding window layers whose window is shorter than its context, with
`--disable-sliding-window`.

## Why it matters
vLLM takes the window for the longest context: a longer `--max-model-len` is refused, and without
one the server takes no prompt beyond the window.

## Bad
```bash
vllm serve openai/gpt-oss-20b --disable-sliding-window --max-model-len 32768
```

## Good
```bash
vllm serve openai/gpt-oss-20b --max-model-len 32768
```

## Fix
Leave the flag out.

## References
- vllm:0.33.0:vllm/config/model.py#_get_and_verify_max_len
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.hf_overrides import allows_any_length, context_length
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity
from vllm_advisor.types.model import KVCacheSpecKind
from vllm_advisor.units import format_tokens

_FLAG = "disable_sliding_window"


@rule(
    id="CTX005",
    name="sliding-window-caps-length",
    severity=Severity.ERROR,
    needs=("model",),
    flags=(_FLAG, "max_model_len", "hf_overrides"),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Compare the context with the window."""
    model = subject.model
    if model is None or not subject.args.get(_FLAG) or allows_any_length(subject):
        return
    sliding = KVCacheSpecKind.SLIDING_WINDOW
    windows = [s.window for s in model.cache_specs if s.kind is sliding and s.window]
    length = context_length(subject)
    if not windows or length <= min(windows):
        return
    name, window = subject.spelling(_FLAG), min(windows)
    yield Fault(
        message=f"{name} leaves {model.model_id} its window of {format_tokens(window)} tokens as "
        f"its whole context, and {format_tokens(length)} are wanted",
        location=subject.place(_FLAG),
        fix=f"leave {name} out, or --max-model-len {window}",
        evidence=(("sliding_window", window), ("max_model_len", length)),
    )
