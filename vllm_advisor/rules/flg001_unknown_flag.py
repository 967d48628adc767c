"""A flag that this version of vLLM does not have.

## What it checks
Every word that begins with a dash is looked up among the option strings of the version's own
parser, with the negative spellings, unique abbreviations and dotted JSON keys it accepts.

## Why it matters
`vllm serve` prints "unrecognized arguments" and exits before it loads anything. Flags come and go
with versions: a command copied from an older guide is the usual cause.

## Bad
```bash
# vllm: 0.33.0
vllm serve Qwen/Qwen3-8B --swap-space 4
```

## Good
```bash
# vllm: 0.33.0
vllm serve Qwen/Qwen3-8B --kv-offloading-size 4
```

## Fix
Write what took the flag's place, its name in this version, or leave it out. Where another version's
flag has only another spelling here, `--fix` writes that one. Close spellings are listed; a close
spelling need not mean the same.

## References
- vllm:0.33.0:vllm/utils/argparse_utils.py#FlexibleArgumentParser
- https://docs.vllm.ai/en/latest/cli/serve
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.knowledge.engines import known_versions, load_engine
from vllm_advisor.knowledge.version_names import flag_replacement
from vllm_advisor.parse.remarks import UnknownFlag
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.edit import Edit
from vllm_advisor.types.engine import EngineFacts
from vllm_advisor.types.finding import Severity


@rule(id="FLG001", name="unknown-flag", severity=Severity.ERROR)
def check(subject: Subject) -> Iterator[Fault]:
    """Report each unknown flag, with the recorded versions that have it."""
    version = subject.engine.version
    for unknown in subject.command.unknown:
        name = unknown.token.partition("=")[0]
        elsewhere = [v for v in known_versions() if load_engine(v).flag(name) is not None]
        message = f"vLLM {version} has no flag {name}"
        fixes = []
        same = _same_flag(subject.engine, name, elsewhere)
        if same:
            message += f"; it is written {same} there"
            fixes.append(f"write {same}")
        if elsewhere:
            message += f"; {', '.join(elsewhere)} has it"
            fixes.append(f"use vLLM {elsewhere[-1]}")
        instead = flag_replacement(name)
        if instead is not None:
            fixes.append(instead)
        elif unknown.close and not same:
            fixes.append(f"if one of these is meant, write it: {', '.join(unknown.close)}")
        if instead is None or not instead.startswith("leave it out"):
            fixes.append(f"leave {name} out")
        yield Fault(
            message=message,
            location=unknown.location,
            fix="; or ".join(fixes),
            evidence=(("flag", name), ("vllm_version", version)),
            edits=_renamed(unknown, name, same) if same else (),
        )


def _same_flag(engine: EngineFacts, name: str, elsewhere: list[str]) -> str | None:
    """How this version spells what another one means by a name, if it takes the same values."""
    for version in reversed(elsewhere):
        other = load_engine(version).flag(name)
        if other is None or (here := engine.flags.get(other.dest)) is None:
            continue
        if (here.kind, here.nargs) == (other.kind, other.nargs):
            spellings = here.negations if name in other.negations else here.spellings
            return spellings[0] if spellings else None
    return None


def _renamed(unknown: UnknownFlag, name: str, instead: str) -> tuple[Edit, ...]:
    place = unknown.location
    edit = Edit(file=place.file, line=place.line, column=place.column, old=name, new=instead)
    return (edit,)
