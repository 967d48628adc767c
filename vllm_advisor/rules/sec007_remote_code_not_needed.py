"""`--trust-remote-code` is given, and the model's config names no code.

## What it checks
The flag, against the `auto_map` of the model's config and the flags of its published recipe.

## Why it matters
The flag lets the repository run its own Python in the server. Where there is none today it has no
effect but for whoever adds some to the repository tomorrow.

## Bad
```bash
vllm serve Qwen/Qwen3-8B --trust-remote-code
```

## Good
```bash
vllm serve Qwen/Qwen3-8B
```

## Fix
Leave the flag out. Where only the tokenizer needs it, pin the repository with `--revision`.

## References
- vllm:0.33.0:vllm/config/model.py#ModelConfig
- https://huggingface.co/docs/transformers/custom_models
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.errors import UnknownFactError
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity


@rule(
    id="SEC007",
    name="remote-code-not-needed",
    severity=Severity.WARNING,
    flags=("trust_remote_code",),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Compare the flag with what the repository brings."""
    if not subject.args.get("trust_remote_code"):
        return
    model = subject.model
    if model is None:
        raise UnknownFactError(subject.why_missing("model") or "the model is not known")
    if model.brings_code or model.serving.base_args.get("trust_remote_code"):
        return
    yield Fault(
        message=f"the config of {model.model_id} names no code of its own, and the flag would run "
        "whatever is added to the repository",
        location=subject.place("trust_remote_code"),
        fix="leave --trust-remote-code out",
    )
