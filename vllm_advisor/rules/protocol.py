"""What a rule is: a function over one instance under check, and the facts it cannot do without.

Rules judge; they never read files, never print, and never import each other.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from vllm_advisor.errors import AdvisorError
from vllm_advisor.knowledge.overheads import memory_before_start
from vllm_advisor.parse.deployed import Deployed, ServedInstance
from vllm_advisor.parse.serve_command import ParsedCommand
from vllm_advisor.sizing.measured_memory import logged_before_start
from vllm_advisor.sizing.settings import InstanceSettings
from vllm_advisor.types.accelerator import Node
from vllm_advisor.types.decision import Location
from vllm_advisor.types.edit import Edit
from vllm_advisor.types.engine import EngineArgs, EngineFacts, Overheads
from vllm_advisor.types.finding import Severity
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.types.sizing import InstanceFigures
from vllm_advisor.types.suppression import Suppression
from vllm_advisor.types.workload import RequestClass

Need = Literal["model", "accelerator", "settings", "figures", "workload"]

# Needs that are not fields of their own name.
_FIELDS = {"accelerator": "node", "workload": "classes"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One instance under check, and what is known of it.

    What could not be found out is ``None``. ``settings`` are the engine's arguments with vLLM's
    defaults filled in, ``figures`` what ``size_instance`` made of them, ``sizing_error`` what it
    raised instead; ``overheads`` are the constants that they rest on. ``classes`` are the requests
    that reach this one server. ``missing`` says why a fact is not there, by its name in
    :data:`Need`. ``instance`` is the server as its source has it (container, pod, volumes, probes),
    ``deployed`` the whole source around it.
    """

    command: ParsedCommand
    engine: EngineFacts
    model: ModelFacts | None = None
    node: Node | None = None
    settings: InstanceSettings | None = None
    figures: InstanceFigures | None = None
    sizing_error: AdvisorError | None = None
    overheads: Overheads | None = None
    classes: tuple[RequestClass, ...] | None = None
    missing: Mapping[str, str] = field(default_factory=dict)
    instance: ServedInstance | None = None
    deployed: Deployed | None = None

    @property
    def args(self) -> EngineArgs:
        """The arguments as given, without defaults."""
        return self.command.engine_args

    @property
    def before_start_bytes(self) -> int | None:
        """What is gone of the GPU before vLLM starts; what a calibration's log says wins."""
        if self.node is None or self.settings is None:
            return None
        gpu, joined = self.node.accelerator, self.settings.tensor_parallel_size > 1
        usual = memory_before_start(
            gpu.id, tensor_parallel=joined, unified_memory=gpu.unified_memory
        )
        measured = self.overheads.measured if self.overheads else None
        return usual.size_bytes + logged_before_start(measured, tensor_parallel=joined)

    def place(self, *dests: str) -> Location:
        """Where the first of these flags that is given is written, else the command's place."""
        for dest in dests:
            for arg in self.args:
                if arg.dest == dest and isinstance(arg.origin, Location):
                    return arg.origin
        return self.command.location

    def spelling(self, dest: str) -> str:
        """The flag of a dest as people write it: ``--max-model-len``."""
        flag = self.engine.flags.get(dest)
        return flag.spellings[0] if flag else f"--{dest.replace('_', '-')}"

    def why_missing(self, need: Need) -> str | None:
        """Why a fact is not known, or ``None`` when it is."""
        if getattr(self, _FIELDS.get(need, need)) is not None:
            return None
        if need in self.missing:
            return self.missing[need]
        if need == "model":
            if any(u.dest == "model" for u in self.command.unresolved):
                return f"the model is {self.command.model}, which only the shell knows"
            return f"the facts of {self.command.model or 'the model'} are not known"
        if need == "accelerator":
            return "the GPU is not known"
        if need == "workload":
            return "the traffic is not known; give --workload"
        if self.sizing_error is not None:
            return self.sizing_error.what
        cause = self.why_missing("model") or self.why_missing("accelerator")
        return cause or "the instance was not sized"

    def why_unread(self, dest: str) -> str | None:
        """Why the value of a flag that is given cannot be judged, or ``None`` when it can."""
        for unresolved in self.command.unresolved:
            if unresolved.dest == dest:
                name = self.spelling(dest)
                return f"{name} is {unresolved.text}, which only the shell knows"
        for problem in self.command.problems:
            if problem.dest == dest and all(arg.dest != dest for arg in self.args):
                return f"{self.spelling(dest)} has a value that vLLM does not read"
        return None

    @property
    def open_ended(self) -> bool:
        """Whether a word or a file that cannot be read may set any flag."""
        has_file = self.args.get("config") is not None
        return has_file or any(not u.dest for u in self.command.unresolved)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What a rule found; the rule's id, name, severity and confidence are added to it.

    ``fix`` names the flag to change, and the number where there is one. ``evidence`` holds the
    figures behind the message as data: ``(name, value)``, names as ``kv_cache_bytes``. ``edits``
    make the fix, all of them together, where a machine can.
    ``severity`` is the rule's own unless this fault is milder, or worse, than most of its kind.
    """

    message: str
    location: Location
    fix: str
    evidence: tuple[tuple[str, str | int | float], ...] = ()
    edits: tuple[Edit, ...] = ()
    severity: Severity | None = None

    def __post_init__(self) -> None:
        if not self.fix:
            raise ValueError(f"a fault without a fix: {self.message}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSubject:
    """One source under check: everything in it, and a subject for each of its servers."""

    deployed: Deployed
    subjects: tuple[Subject, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SuppressionUse:
    """One suppression, and what came of it.

    ``idle`` are those of its names that kept no finding back, although their rules ran; ``unknown``
    those that name no rule a comment can suppress, each with the nearest names there are.
    """

    suppression: Suppression
    idle: tuple[str, ...] = ()
    unknown: tuple[tuple[str, tuple[str, ...]], ...] = ()


Check = Callable[[Subject], Iterator[Fault]]
SourceCheck = Callable[[SourceSubject], Iterator[Fault]]
SuppressionCheck = Callable[[SuppressionUse], Iterator[Fault]]
Scope = Literal["instance", "source", "suppression"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule of ``check``. Its page is the docstring of the module it stands in.

    ``needs`` are facts without which it cannot run; ``flags`` the dests whose values it reads.
    ``scope`` says whether ``check`` gets a :class:`Subject`, a :class:`SourceSubject` or a
    :class:`SuppressionUse`.
    """

    id: str
    name: str
    severity: Severity
    needs: tuple[Need, ...]
    flags: tuple[str, ...]
    check: Callable[[Any], Iterator[Fault]]
    scope: Scope = "instance"

    @property
    def family(self) -> str:
        """The letters of the id: ``KV``."""
        return self.id[:-3]

    @property
    def page(self) -> str:
        """The rule's documentation, in Markdown."""
        return (sys.modules[self.check.__module__].__doc__ or "").strip()

    @property
    def summary(self) -> str:
        """The first line of the page."""
        return self.page.partition("\n")[0]


def rule(
    *,
    id: str,  # noqa: A002 - the field's own word
    name: str,
    severity: Severity,
    needs: tuple[Need, ...] = (),
    flags: tuple[str, ...] = (),
) -> Callable[[Check], Rule]:
    """Make a rule of a function that yields a :class:`Fault` for each fault of a subject.

    The function raises ``UnknownFactError`` when it finds out that a fact is missing after all.

    Args:
        id: family and number, never given to another rule: ``KV001``.
        name: what is wrong, in kebab case.
        severity: how bad it is; a fault may say otherwise of itself.
        needs: facts the function relies on.
        flags: dests whose values the function reads; those behind ``settings`` and ``figures``
            are implied.
    """

    def make(check: Check) -> Rule:
        return Rule(id=id, name=name, severity=severity, needs=needs, flags=flags, check=check)

    return make


def source_rule(
    *,
    id: str,  # noqa: A002 - the field's own word
    name: str,
    severity: Severity,
) -> Callable[[SourceCheck], Rule]:
    """Make a rule over a whole source: what several servers, or other objects, have to do with it.

    The function yields a :class:`Fault` for each fault and raises ``UnknownFactError`` when a fact
    is missing. It also runs over sources without a server.

    Args:
        id: family and number, never given to another rule: ``K8S001``.
        name: what is wrong, in kebab case.
        severity: how bad it is.
    """

    def make(check: SourceCheck) -> Rule:
        return Rule(
            id=id, name=name, severity=severity, needs=(), flags=(), check=check, scope="source"
        )

    return make


def suppression_rule(
    *,
    id: str,  # noqa: A002 - the field's own word
    name: str,
    severity: Severity,
) -> Callable[[SuppressionCheck], Rule]:
    """Make a rule of a function that judges one suppression of a file, after everything else."""

    def make(check: SuppressionCheck) -> Rule:
        return Rule(
            id=id, name=name, severity=severity, needs=(), flags=(), check=check,
            scope="suppression",
        )  # fmt: skip

    return make
