"""The server runs Python code of the model's repository.

## What it checks
`--trust-remote-code` with a model whose config names code of its own (`auto_map`), or whose recipe
asks for the flag, without a commit in `--revision`.

## Why it matters
Whoever can change the repository can change what runs in the server at its next start.

## Bad
```bash
vllm serve nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16 --trust-remote-code
```

## Good
```bash
vllm serve nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16
```

## Fix
Read the code and pin it: `--revision` and `--code-revision` with the commit.

## References
- vllm:0.33.0:vllm/config/model.py#ModelConfig.code_revision
- https://huggingface.co/docs/transformers/custom_models
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from vllm_advisor.errors import UnknownFactError
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity

_COMMIT = re.compile(r"[0-9a-f]{7,40}")


@rule(
    id="SEC008",
    name="remote-code-trusted",
    severity=Severity.INFO,
    flags=("trust_remote_code", "revision", "code_revision"),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Look for the commit that the code is pinned to."""
    args = subject.args
    if not args.get("trust_remote_code") or subject.command.model.startswith(("/", "./")):
        return
    model = subject.model
    if model is None:
        raise UnknownFactError(subject.why_missing("model") or "the model is not known")
    if not model.brings_code and not model.serving.base_args.get("trust_remote_code"):
        return
    pinned = str(args.get("code_revision") or args.get("revision") or "")
    if _COMMIT.fullmatch(pinned):
        return
    yield Fault(
        message=f"the server runs code of the repository of {model.model_id}, in whatever state it "
        "is at each start",
        location=subject.place("trust_remote_code"),
        fix="read the code and pin it: --revision COMMIT --code-revision COMMIT",
    )
