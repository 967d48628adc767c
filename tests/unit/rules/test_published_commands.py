"""Commands that others publish and run: the rules about the start have nothing to say of them."""

from __future__ import annotations

import pytest
from checked_subject import TESTS, node_of

from vllm_advisor.knowledge.engines import load_engine
from vllm_advisor.knowledge.model_facts import model_facts
from vllm_advisor.knowledge.model_profiles import find_model_profile
from vllm_advisor.parse.serve_command import ParsedCommand, parse_shell_script
from vllm_advisor.rules.protocol import Subject
from vllm_advisor.rules.registry import run_rules
from vllm_advisor.types.finding import Severity
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.types.source import Source, SourceKind

_FILE = TESTS / "data" / "recipes" / "commands.sh"
_COMMANDS = parse_shell_script(_FILE.read_text("utf-8"), _FILE.name, load_engine())


def _model(name: str) -> ModelFacts | None:
    profile = find_model_profile(name)
    if profile is None:
        return None
    source = Source(SourceKind.PROFILE, f"models/{profile.slug}")
    return model_facts(name, profile.config, source=source, serving=profile.serving)


def test_most_models_are_known() -> None:
    known = [c.model for c in _COMMANDS if _model(c.model) is not None]
    assert len(known) >= len(_COMMANDS) - 2  # Seed-OSS and Mistral Small 4


@pytest.mark.parametrize("command", _COMMANDS, ids=lambda c: c.model)
def test_nothing_is_found(command: ParsedCommand) -> None:
    subject = Subject(
        command=command,
        engine=load_engine(),
        model=_model(command.model),
        node=node_of("h200-sxm x 8"),
    )
    found, _ = run_rules(subject)
    assert [(f.rule, f.message) for f in found if f.severity is not Severity.INFO] == []
