"""An environment variable with vLLM's prefix that vLLM does not know.

## What it checks
Every `VLLM_...` variable that the command is given, against the variables of all releases.

## Why it matters
vLLM logs "Unknown vLLM environment variable detected" and ignores it, so a misspelt setting is not
made. With `--fail-on-environ-validation` it refuses to start.

## Bad
```bash
VLLM_LOGING_LEVEL=WARNING vllm serve Qwen/Qwen3-8B
```

## Good
```bash
VLLM_LOGGING_LEVEL=WARNING vllm serve Qwen/Qwen3-8B
```

## Fix
Correct the spelling; give a variable of your own another prefix.

## References
- vllm:0.33.0:vllm/envs.py#environment_variables
- vllm:0.33.0:vllm/platforms/interface.py#validate_environ
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from vllm_advisor.knowledge.version_names import variable_names, variable_spans
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity

_PREFIX = "VLLM_"
_PLUGIN = "VLLM_ADVISOR"  # variables of our own plugin, which hides them from vLLM's check
_ALIKE = 0.85  # of difflib's ratio: one wrong letter in a name of ten


@rule(id="ENV001", name="variable-not-known", severity=Severity.WARNING)
def check(subject: Subject) -> Iterator[Fault]:
    """Look each variable up in the history of all releases."""
    version = subject.engine.version
    given = [name for name in subject.command.env if name.startswith(_PREFIX)]
    for name in given:
        if variable_spans(name) or name.startswith(_PLUGIN):
            continue
        close = get_close_matches(name, variable_names(version), n=1, cutoff=_ALIKE)
        own = f"MY_{name.removeprefix(_PREFIX)}"
        yield Fault(
            message=f"vLLM knows no variable {name}: it warns and ignores it",
            location=subject.command.env_locations[name],
            fix=f"write {close[0]}" if close else f"if it is your own, call it {own}",
            evidence=(("variable", name), ("vllm_version", version)),
        )
