"""Finds the rules by scanning this package, and runs them.

A rule is a module ``<id>_<name>.py`` that makes one :class:`~vllm_advisor.rules.protocol.Rule`.
There is no list to keep; a duplicate or misnamed rule fails when this module is imported.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import re
from collections.abc import Collection, Iterable

import vllm_advisor.rules as package
from vllm_advisor.errors import InputError, UnknownFactError
from vllm_advisor.knowledge.engines import layout_assumptions
from vllm_advisor.rules.protocol import (
    Fault,
    Rule,
    SourceSubject,
    Subject,
    SuppressionUse,
)
from vllm_advisor.sizing.settings import InstanceSettings
from vllm_advisor.types.finding import Finding, NotChecked
from vllm_advisor.types.source import Assumption, Confidence, confidence_of

_MODULE = re.compile(r"[a-z0-9]+?\d{3}_\w+")
# Flags behind an instance's figures: the fields of InstanceSettings bear vLLM's own names, but for
# two that are made from these.
_SIZING_FLAGS = (
    *(field.name for field in dataclasses.fields(InstanceSettings)),
    "disable_hybrid_kv_cache_manager",
    "enable_lora",
    "hf_overrides",
)


def collect(found: Iterable[tuple[str, Rule]]) -> tuple[Rule, ...]:
    """Rules in the order of their ids.

    Args:
        found: module name and rule.

    Raises:
        ValueError: two rules share an id or a name, or a module is not named after its rule.
    """
    rules: dict[str, Rule] = {}
    for module, rule in found:
        expected = f"{rule.id.lower()}_{rule.name.replace('-', '_')}"
        if module != expected:
            raise ValueError(f"rule {rule.id} {rule.name} stands in {module}, not in {expected}")
        if rule.id in rules or any(rule.name == other.name for other in rules.values()):
            raise ValueError(f"two rules are called {rule.id} or {rule.name}")
        rules[rule.id] = rule
    return tuple(rules[key] for key in sorted(rules))


def _scan() -> Iterable[tuple[str, Rule]]:
    for info in pkgutil.iter_modules(package.__path__):
        if not _MODULE.fullmatch(info.name):
            continue
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        rules = [value for value in vars(module).values() if isinstance(value, Rule)]
        if len(rules) != 1:
            raise ValueError(f"{info.name} makes {len(rules)} rules, not one")
        yield info.name, rules[0]


_RULES = collect(_scan())


def all_rules() -> tuple[Rule, ...]:
    """Every rule, by id."""
    return _RULES


def find_rule(name: str) -> Rule:
    """The rule of that id or name.

    Raises:
        InputError: there is none.
    """
    return _selected((name,))[0]


def run_suppression_rules(
    uses: Iterable[SuppressionUse], select: Collection[str] | None = None
) -> tuple[Finding, ...]:
    """Judge the suppressions of a file.

    Args:
        uses: each suppression and what came of it.
        select: ids or names of the rules to run; ``None`` for all.

    Raises:
        InputError: ``select`` names no rule.
    """
    rules = [rule for rule in _selected(select) if rule.scope == "suppression"]
    return tuple(
        _finding(rule, fault, Confidence.HIGH)
        for use in uses
        for rule in rules
        for fault in rule.check(use)
    )


def run_rules(
    subject: Subject, select: Collection[str] | None = None
) -> tuple[tuple[Finding, ...], tuple[NotChecked, ...]]:
    """Run the rules over one instance.

    Args:
        subject: the instance.
        select: ids or names of the rules to run; ``None`` for all.

    Returns:
        Findings in the order of their places, and each rule that could not run with the fact that
        was missing.

    Raises:
        InputError: ``select`` names no rule.
    """
    findings: list[Finding] = []
    not_checked: list[NotChecked] = []
    for rule in _selected(select):
        if rule.scope != "instance":
            continue
        reason = _why_not(rule, subject)
        if reason is not None:
            not_checked.append(NotChecked(rule=rule.id, reason=reason))
            continue
        confidence = _confidence(rule, subject)
        try:
            findings.extend(_finding(rule, fault, confidence) for fault in rule.check(subject))
        except UnknownFactError as error:
            not_checked.append(NotChecked(rule=rule.id, reason=error.what))
    return _in_order(findings), tuple(not_checked)


def run_source_rules(
    subject: SourceSubject, select: Collection[str] | None = None
) -> tuple[tuple[Finding, ...], tuple[NotChecked, ...]]:
    """Run the rules that look at a whole source; as :func:`run_rules` otherwise."""
    findings: list[Finding] = []
    not_checked: list[NotChecked] = []
    for rule in _selected(select):
        if rule.scope != "source":
            continue
        try:
            faults = list(rule.check(subject))
        except UnknownFactError as error:
            not_checked.append(NotChecked(rule=rule.id, reason=error.what))
        else:
            findings += [_finding(rule, fault, Confidence.HIGH) for fault in faults]
    return _in_order(findings), tuple(not_checked)


def _in_order(findings: list[Finding]) -> tuple[Finding, ...]:
    def place(finding: Finding) -> tuple[str, int, int, str]:
        at = finding.location
        return (at.file, at.line, at.column, finding.rule)

    return tuple(sorted(findings, key=place))


def _selected(select: Collection[str] | None) -> tuple[Rule, ...]:
    if select is None:
        return _RULES
    unknown = sorted(set(select) - {key for rule in _RULES for key in (rule.id, rule.name)})
    if unknown:
        raise InputError(
            f"no rule is called {', '.join(unknown)}",
            fix=f"choose from {', '.join(rule.id for rule in _RULES)}",
        )
    return tuple(rule for rule in _RULES if rule.id in select or rule.name in select)


def _reads(rule: Rule) -> tuple[str, ...]:
    sized = "settings" in rule.needs or "figures" in rule.needs
    return (*rule.flags, *(_SIZING_FLAGS if sized else ()))


def _why_not(rule: Rule, subject: Subject) -> str | None:
    """The first thing a rule needs and does not have."""
    reasons = (
        *(subject.why_unread(dest) for dest in _reads(rule)),
        *(subject.why_missing(need) for need in rule.needs),
    )
    return next((reason for reason in reasons if reason is not None), None)


def _confidence(rule: Rule, subject: Subject) -> Confidence:
    assumptions: tuple[Assumption, ...] = ()
    if "figures" in rule.needs and subject.figures is not None:
        assumptions += subject.figures.assumptions
    if rule.needs:
        assumptions += layout_assumptions(subject.engine)
    if not subject.engine.known:
        text = f"the flags of vLLM {subject.engine.version_used} are taken for those of "
        text += subject.engine.version
        assumptions += (Assumption(id="engine-version-not-recorded", text=text),)
    if subject.open_ended and _reads(rule):
        text = "the command may set more flags than can be read"
        assumptions += (Assumption(id="open-command", text=text, lowers_to=Confidence.LOW),)
    return confidence_of(assumptions)


def _finding(rule: Rule, fault: Fault, confidence: Confidence) -> Finding:
    return Finding(
        rule=rule.id,
        name=rule.name,
        severity=fault.severity or rule.severity,
        confidence=confidence,
        message=fault.message,
        location=fault.location,
        fix=fault.fix,
        evidence=fault.evidence,
        edits=fault.edits,
    )
