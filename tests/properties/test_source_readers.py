"""Whatever text comes in: it is read, or refused at its place. Never a crash, never for long."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vllm_advisor.api.checking import check
from vllm_advisor.errors import AdvisorError, InputError
from vllm_advisor.knowledge.engines import load_engine
from vllm_advisor.parse.deployed import Deployed
from vllm_advisor.parse.kinds import KINDS, kind_of
from vllm_advisor.parse.sources import read_source

TESTS = Path(__file__).parents[1]
ENGINE = load_engine()
KEPT = [
    path
    for folder in ("golden_targets", "golden", "data/kubernetes")
    for path in sorted((TESTS / folder).rglob("*"))
    if path.suffix in (".yaml", ".sh") and path.name != "workload.yaml"
]
MOST_SECONDS = 5

WORDS = st.sampled_from([
    "vllm", "serve", "--model", "org/m", "--max-model-len", "8192", "args", "command", "image",
    "vllm/vllm-openai:v0.33.0", "containers", "spec", "kind", "Pod", "env", "name", "value",
    "services", "servingEngineSpec", "modelSpec", "vllmConfig", "resources", "limits", "volumes",
    "emptyDir", "healthcheck", "instances", "engine_args", "ExecStart=", "Environment=", "FROM",
    "CMD", "ENTRYPOINT", "[", "]", "{", "}", ":", ": ", "- ", ", ", "\n", "\n  ", "\n    ", "|", ">",
    "&a ", "*a", "<<: ", "'", '"', "\\", "\\\n", "$(A)", "${B:-c}", "$$", "#", "!t ", "---", "~",
    "1e9999999", "0x", "2024-13-45", "1:30", "true", "-", "é", "\u2028", "\x00", "\ud800", "{{ x }}",
    "sh", "-c", '"$@"', "nvidia.com/gpu", "99999999999999999999", "9" * 5000, "1.", "5Gi", "template",
])  # fmt: skip
TEXTS = st.lists(WORDS | st.text(max_size=6), max_size=40).map("".join)
YAMLISH = st.lists(
    st.tuples(st.integers(0, 4), WORDS, st.sampled_from([": ", ":", ""]), WORDS), max_size=25
).map(lambda rows: "\n".join(f"{'  ' * n}{key}{colon}{value}" for n, key, colon, value in rows))


@pytest.fixture(autouse=True, scope="module")
def offline() -> Iterator[None]:
    """A model that is not bundled is not asked for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        yield


def read(text: str, kind: str | None) -> None:
    """Read a text; nothing but an InputError with a place may come out, and soon."""
    started = time.process_time()
    refused: InputError | None = None
    try:
        deployed = read_source(text, "f", lambda _image: ENGINE, kind=kind)
    except InputError as error:
        refused, deployed = error, Deployed(kind="", file="f", instances=())
    assert refused is None or (refused.what and refused.where.startswith("f"))
    for instance in deployed.instances:
        assert instance.location.line >= 1
        assert instance.command.location.line >= 1
        for arg in instance.command.engine_args:
            assert str(arg.origin).startswith("f:")
    assert time.process_time() - started < MOST_SECONDS


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=150)
@given(text=TEXTS | YAMLISH)
def test_any_text_of_any_kind(kind: str, text: str) -> None:
    read(text, kind)


@settings(max_examples=300)
@given(text=TEXTS | YAMLISH)
def test_any_text(text: str) -> None:
    assert kind_of("f", text) in {None, *KINDS}
    read(text, None)


@settings(max_examples=250, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), path=st.sampled_from(KEPT))
def test_a_real_file_with_something_else_in_it(data: st.DataObject, path: Path) -> None:
    """Lines or parts of lines are taken out, doubled, moved or replaced."""
    text = path.read_text(encoding="utf-8")[:12_000]
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 60)))
        part = data.draw(st.sampled_from(["", text[start:end] * 2]) | WORDS | TEXTS)
        text = text[:start] + part + text[end:]
    read(text, kind_of(path.name, text) or data.draw(st.sampled_from(KINDS)))


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(data=st.data(), path=st.sampled_from(KEPT))
def test_check_answers_or_says_why_not(data: st.DataObject, path: Path) -> None:
    """All of it, rules and figures too: values that no flag takes, models that nobody has."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for _ in range(data.draw(st.integers(1, 3))):
        number = data.draw(st.integers(0, len(lines) - 1))
        value = data.draw(WORDS | st.sampled_from(['"-1"', '"0"', '"1.5"', '""', '"x"', "8"]))
        indent = lines[number][: len(lines[number]) - len(lines[number].lstrip("- "))]
        lines[number] = f"{indent}{value}"
    with contextlib.suppress(AdvisorError):
        check(path.name, text="\n".join(lines), gpu="l4").to_dict()


@pytest.mark.parametrize("path", KEPT, ids=lambda p: f"{p.parent.parent.name}-{p.name}")
def test_a_real_file(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if kind_of(path.name, text) is not None:
        read(text, None)
    for kind in KINDS:
        read(text, kind)
