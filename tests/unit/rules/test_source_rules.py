"""Rules that look at a whole source rather than at one server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from vllm_advisor.api.checking import check as check_source
from vllm_advisor.errors import UnknownFactError
from vllm_advisor.rules import registry
from vllm_advisor.rules.protocol import Fault, Rule, SourceSubject, Subject, rule, source_rule
from vllm_advisor.types.finding import Severity

TEXT = """\
kind: Service
metadata: {name: vllm}
---
kind: Pod
metadata: {name: p}
spec: {containers: [{image: 'vllm/vllm-openai:v0.33.0', args: [m]}]}
"""


@pytest.fixture(autouse=True, scope="module")
def offline() -> Iterator[None]:
    """A model that is not bundled is not asked for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        yield


@source_rule(id="TST001", name="service-named-vllm", severity=Severity.WARNING)
def named(subject: SourceSubject) -> Iterator[Fault]:
    """A Service of that name beside a server."""
    for service in subject.deployed.of_kind("Service"):
        servers = len(subject.subjects)
        place = service.where("metadata", "name")
        yield Fault(message=f"{servers} servers", location=place, fix="rename it")


@source_rule(id="TST002", name="unknowable", severity=Severity.ERROR)
def unknowable(subject: SourceSubject) -> Iterator[Fault]:
    """Always without the fact that it needs."""
    raise UnknownFactError(f"nobody knows {subject.deployed.file}")
    yield


@rule(id="TST003", name="one-server", severity=Severity.INFO)
def one_server(subject: Subject) -> Iterator[Fault]:
    """Sees the server as its source has it."""
    assert subject.instance is not None
    assert subject.deployed is not None
    assert subject.instance in subject.deployed.instances
    assert subject.deployed.beside(subject.instance) == ()
    yield Fault(message=subject.instance.name, location=subject.instance.location, fix="none")


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> None:
    rules: tuple[Rule, ...] = (named, unknowable, one_server)
    monkeypatch.setattr(registry, "_RULES", rules)


@pytest.mark.usefixtures("only")
def test_each_rule_gets_what_it_is_about() -> None:
    report = check_source("f.yaml", text=TEXT)
    assert [(f.rule, f.message, str(f.location)) for f in report.findings] == [
        ("TST001", "1 servers", "f.yaml:2:12"),
        ("TST003", "Pod/p", "f.yaml:6:21"),
    ]
    assert [(n.rule, n.reason) for n in report.not_checked] == [("TST002", "nobody knows f.yaml")]


@pytest.mark.usefixtures("only")
def test_a_source_without_a_server_is_looked_at() -> None:
    report = check_source("f.yaml", text=TEXT.partition("---")[0])
    assert [(f.rule, f.message) for f in report.findings] == [("TST001", "0 servers")]
