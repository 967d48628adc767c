"""A quantization method that this vLLM version does not have by itself.

## What it checks
`--quantization` against the methods of the version, a model in GGUF format, and the methods that
are refused as deprecated. GGUF is a plugin's since 0.24, bitsandbytes since 0.28.

## Why it matters
vLLM refuses to start: "Unknown quantization method: gguf".

## Bad
```bash
vllm serve Qwen/Qwen3-8B --quantization bitsandbytes
```

## Good
```bash
vllm serve Qwen/Qwen3-8B --quantization fp8
```

## Fix
Install the plugin that took the method over, in a version that fits vLLM, or take another method.
Most checkpoints need no flag: vLLM reads the method from their config.

## References
- vllm:0.33.0:vllm/config/model.py#_verify_quantization
- https://github.com/vllm-project/vllm/pull/43529
- https://github.com/vllm-project/vllm/issues/39583
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches

from vllm_advisor.errors import NotModelledError
from vllm_advisor.knowledge.quantization_support import (
    deprecated_methods,
    gone_method,
    platform_plugin,
)
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.decision import Location
from vllm_advisor.types.finding import Severity

_ALLOW = "allow_deprecated_quantization"
# A file, or a repository with the quantization of one of its files: org/name-GGUF:Q4_K_M.
_GGUF = re.compile(r".+\.gguf|.+:(?:UD-)?I?Q\d\w*", re.IGNORECASE)


@rule(id="QNT003", name="quantization-method-unknown", severity=Severity.ERROR)
def check(subject: Subject) -> Iterator[Fault]:
    """Judge the flag, else the model's name."""
    refused = [
        p
        for p in subject.command.problems
        if p.dest == "quantization" and p.code == "invalid-choice"
    ]
    if refused:
        yield from _unknown(subject, refused[0].value, refused[0].location)
        return
    given, version = subject.args.get("quantization"), subject.engine.version
    if given is None:
        if _GGUF.fullmatch(subject.command.model):
            yield from _unknown(subject, "gguf", subject.place("model"))
        return
    if given in deprecated_methods(version) and not subject.args.get(_ALLOW):
        yield Fault(
            message=f"vLLM {version} refuses {given} as deprecated",
            location=subject.place("quantization"),
            fix=f"another method, or {subject.spelling(_ALLOW)}",
            evidence=(("quantization", str(given)), ("vllm_version", version)),
        )


def _unknown(subject: Subject, method: str, location: Location) -> Iterator[Fault]:
    version = subject.engine.version
    flag = subject.engine.flags.get("quantization")
    known = flag.choices if flag else ()
    gone = gone_method(method)
    if method in known or (gone and not gone.has_left(version)):
        return
    if gone and gone.plugin and _is_loaded(subject, gone.plugin):
        return
    platform = platform_plugin(method)
    if platform is not None:
        raise NotModelledError(f"{method} belongs to {platform}, whose devices are not recorded")
    if gone is None:
        close = get_close_matches(method, known, n=2)
        message = f"vLLM {version} has no quantization method {method}"
        fix = "leave --quantization out: vLLM reads the method from the checkpoint"
        if close:
            fix = f"--quantization {' or '.join(close)}, or {fix}"
    elif gone.plugin is None:
        message, fix = f"{method} left vLLM after {gone.until}", gone.instead
    else:
        message = f"{method} left vLLM after {gone.until} and needs {gone.plugin}"
        fix = f"install {gone.plugin} in a version made for vLLM {version}, or {gone.instead}"
    yield Fault(
        message=message,
        location=location,
        fix=fix,
        evidence=(("quantization", method), ("vllm_version", version)),
    )


def _is_loaded(subject: Subject, plugin: str) -> bool:
    """Whether the plugin (vllm-gguf-plugin) is installed here, or named among those to load."""
    packages = subject.deployed.packages if subject.deployed else ()
    if any(package.value.name.replace("_", "-") == plugin for package in packages):
        return True
    return plugin.split("-")[1] in subject.command.env.get("VLLM_PLUGINS", "")
