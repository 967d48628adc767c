"""A flag that this version of vLLM does not have.

## What it checks
Every word that begins with a dash is looked up among the option strings of the version's own
parser, with the negative spellings, unique abbreviations and dotted JSON keys it accepts. Of a
version that is not recorded, a flag that its neighbour does not have is a warning.

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
Write the flag's name in this version, or leave it out. The finding says since when the flag is
gone, or from when on it is there, and what to write instead where that is known. Close spellings
are listed; a close spelling need not mean the same. Where another spelling takes the same values,
`--fix` writes it.

## References
- vllm:0.33.0:vllm/utils/argparse_utils.py#FlexibleArgumentParser
- https://docs.vllm.ai/en/latest/cli/serve
"""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from vllm_advisor.errors import UnknownFactError
from vllm_advisor.knowledge.engine_history import flag_history, replacement
from vllm_advisor.knowledge.engines import load_engine
from vllm_advisor.parse.remarks import UnknownFlag
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.edit import Edit
from vllm_advisor.types.engine import EngineFacts
from vllm_advisor.types.engine_history import NameHistory
from vllm_advisor.types.finding import Severity

_OMNI = "--omni"  # hands the command over to another package


@rule(id="FLG001", name="unknown-flag", severity=Severity.ERROR)
def check(subject: Subject) -> Iterator[Fault]:
    """Report each unknown flag, with what became of it."""
    engine = subject.engine
    if any(unknown.token == _OMNI for unknown in subject.command.unknown):
        raise UnknownFactError(f"{_OMNI} is of vLLM-Omni, whose own flags are not recorded")
    for unknown in subject.command.unknown:
        name = unknown.token.partition("=")[0]
        holder = _base(name)
        history = flag_history(name)
        evidence = [("flag", name), ("vllm_version", engine.version)]
        life = _life(history, engine)
        if holder != name and engine.flag(holder) is not None:
            message = f"vLLM {engine.version} takes no single keys of {holder}: there is no {name}"
            fixes = [f"give {holder} one JSON object"]
        else:
            message = "; ".join((_no_flag(name, engine, certain=bool(life)), *life))
            fixes = _fixes(unknown, history, engine)
            evidence += [("since", history.since)] if history.since else []
            evidence += [("until", history.until)] if history.until else []
        yield Fault(
            message=message,
            location=unknown.location,
            fix="; or ".join(fixes),
            evidence=tuple(evidence),
            edits=_renamed(unknown, name, history, engine),
            severity=None if engine.known or life else Severity.WARNING,
        )


def _no_flag(name: str, engine: EngineFacts, *, certain: bool) -> str:
    """A version that is not recorded may have a flag that its neighbour does not have."""
    if engine.known or certain:
        return f"vLLM {engine.version} has no flag {name}"
    used = engine.version_used
    return f"vLLM {used} has no flag {name}, and {engine.version} itself is not recorded"


def _renamed(
    unknown: UnknownFlag, name: str, history: NameHistory, engine: EngineFacts
) -> tuple[Edit, ...]:
    """Another spelling in this version that takes the same values."""
    instead = replacement(history, engine)
    if instead is None or not history.spans or (here := engine.flag(instead)) is None:
        return ()
    there = load_engine(history.spans[-1][0]).flag(name)
    if there is None or (there.kind, there.nargs) != (here.kind, here.nargs):
        return ()
    place = unknown.location
    return (Edit(file=place.file, line=place.line, column=place.column, old=name, new=instead),)


def _life(history: NameHistory, engine: EngineFacts) -> list[str]:
    """When the flag went before this version, and when it comes after it."""
    here = Version(engine.version_used or engine.version)
    gone = [after for after in history.after if after and Version(after) <= here]
    later = [since for since, _ in history.spans if Version(since) > here]
    said = []
    if gone:
        said.append(f"it was removed in {gone[-1]}")
    if later:
        said.append(f"it came {'back ' if gone else ''}in {later[0]}")
    if gone and history.renamed_to:
        named = flag_history(_base(history.renamed_to))
        if named.since:
            said.append(f"it is called {history.renamed_to} since {named.since}")
    if said and history.advice:
        said.append(history.advice)
    return said


def _fixes(unknown: UnknownFlag, history: NameHistory, engine: EngineFacts) -> list[str]:
    """What to do, the surest first."""
    here = Version(engine.version_used or engine.version)
    leave_out = f"leave {history.name} out"
    if instead := replacement(history, engine):
        return [f"write {instead}", leave_out]
    if any(Version(since) < here for since, _ in history.spans):
        return [leave_out]
    fixes = [f"use vLLM {history.since} or newer"] if history.since else []
    if unknown.close:
        fixes.append(f"if one of these is meant, write it: {', '.join(unknown.close)}")
    return [*fixes, leave_out]


def _base(spelling: str) -> str:
    """``--flag`` of ``--flag.key``."""
    return spelling.partition(".")[0]
