"""A flag without the one that it relies on, or beside one that takes it away.

## What it checks
`--enable-auto-tool-choice` needs `--tool-call-parser`, `--enable-log-outputs` needs
`--enable-log-requests`, and `--enable-per-request-metrics` does not go with `--disable-log-stats`.

## Why it matters
vLLM refuses to start: "Error: --enable-auto-tool-choice requires --tool-call-parser".

## Bad
```bash
vllm serve Qwen/Qwen3-8B --enable-auto-tool-choice
```

## Good
```bash
vllm serve Qwen/Qwen3-8B --enable-auto-tool-choice --tool-call-parser hermes
```

## Fix
Add the flag that is missing, or leave the first one out.

## References
- vllm:0.33.0:vllm/entrypoints/common/cli_args.py#validate_parsed_serve_args
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.errors import UnknownFactError
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity

_NEEDS = {
    "enable_auto_tool_choice": "tool_call_parser",
    "enable_log_outputs": "enable_log_requests",
}
_EXCLUDES = {"enable_per_request_metrics": "disable_log_stats"}


@rule(
    id="FLG006",
    name="flag-needs-another",
    severity=Severity.ERROR,
    flags=(*_NEEDS, *_EXCLUDES, *_EXCLUDES.values()),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Look for the partner of each flag."""
    for dest, partner in _NEEDS.items():
        if not subject.args.get(dest) or subject.args.get(partner):
            continue
        if subject.open_ended or subject.why_unread(partner):
            name = subject.spelling(partner)
            raise UnknownFactError(f"whether {name} is given cannot be read from the command")
        yield _fault(subject, dest, partner, "needs", _added(subject, partner))
    for dest, partner in _EXCLUDES.items():
        if subject.args.get(dest) and subject.args.get(partner):
            leave = f"leave {subject.spelling(partner)} out"
            yield _fault(subject, dest, partner, "does not go with", leave)


def _fault(subject: Subject, dest: str, partner: str, relation: str, fix: str) -> Fault:
    return Fault(
        message=f"{subject.spelling(dest)} {relation} {subject.spelling(partner)}",
        location=subject.place(dest),
        fix=f"{fix}, or leave {subject.spelling(dest)} out",
        evidence=(("flag", dest), ("other_flag", partner)),
    )


def _added(subject: Subject, partner: str) -> str:
    """The flag to add, with its value where the model's recipe has one."""
    name = subject.spelling(partner)
    if partner != "tool_call_parser":
        return f"add {name}"
    features = subject.model.serving.features if subject.model else {}
    own = features.get("tool_calling", {}).get(partner)
    return f"add {name} {own}" if own else f"add {name} with the parser of the model's family"
