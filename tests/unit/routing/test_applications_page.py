"""docs/applications.md: its code runs, and its tables name all there is."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from policies import CONTRACTS

from vllm_advisor.routing import Action, Router, afit_history, fit_history
from vllm_advisor.routing.messages import SUMMARY_MARKER, TEMPLATE_TOKENS
from vllm_advisor.types.workload import Needs

PAGE = Path(__file__).parents[3] / "docs" / "applications.md"
TEXT = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
pytestmark = pytest.mark.skipif(not TEXT, reason="the documentation is not here")


class UnreachableError(Exception):
    pass


def run_page(
    monkeypatch: pytest.MonkeyPatch, folder: Path, down: str = ""
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The names that the code of the page defines, and the requests it makes."""
    asked: list[dict[str, Any]] = []

    def create(**request: Any) -> SimpleNamespace:
        asked.append(request)
        if request["model"] == down:
            raise UnreachableError
        message = SimpleNamespace(content=f"answer {len(asked)}")
        return SimpleNamespace(choices=[SimpleNamespace(message=message)])

    client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))
    openai = SimpleNamespace(OpenAI=lambda: client, APIConnectionError=UnreachableError)
    monkeypatch.setitem(sys.modules, "openai", openai)
    policy = {"schema_version": "1", **CONTRACTS.to_dict()}
    (folder / "routing.yaml").write_text(yaml.safe_dump(policy), encoding="utf-8")
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {}
    blocks = re.findall(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)  # noqa: S102
    return names, asked


def said(letters: int, turns: int) -> list[dict[str, str]]:
    return [
        {"role": role, "content": "x" * letters}
        for _ in range(turns)
        for role in ("user", "assistant")
    ]


def test_the_code_of_the_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names, asked = run_page(monkeypatch, tmp_path)
    assert capsys.readouterr().out.startswith("retrieve rag passages may answer it")
    talk = names["reply"]([{"role": "system", "content": "be kind"}], "hello")
    assert [each["role"] for each in talk] == ["system", "user", "assistant"]
    assert talk[-1]["content"] == "answer 1"
    assert asked[0]["model"] == "chat"
    assert asked[0]["max_tokens"] == 1000
    # Ten turns of 2 x (1,000 + 8) = 2,016 tokens are more than chat takes, and long-docs writes
    # the summary, since all of them have to be read for it.
    longer = names["reply"]([*talk, *said(3000, 10)], "and now?")
    assert [request["model"] for request in asked[1:]] == ["long-docs", "chat"]
    assert asked[1]["max_tokens"] == 500
    assert longer[0]["content"] == f"be kind\n\n{SUMMARY_MARKER}\nanswer 2"
    assert longer[-2:] == [
        {"role": "user", "content": "and now?"},
        {"role": "assistant", "content": "answer 3"},
    ]
    assert names["count"](asked[2]["messages"]) <= 6168
    # 30,000 letters are 10,000 tokens of a question.
    names["reply"]([], "x" * 30_000)
    assert asked[-1]["model"] == "long-docs"
    with pytest.raises(RuntimeError, match="more than any instance reads"):
        names["reply"]([], "x" * 600_000)


def test_its_stand_ins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    names, asked = run_page(monkeypatch, tmp_path, down="chat")
    names["reply"]([], "hello")
    assert [request["model"] for request in asked] == ["chat", "long-docs"]
    assert asked[1]["extra_headers"] == {"x-workload": "long-docs"}
    assert asked[1]["max_tokens"] == 2000


def test_its_tables_are_whole() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", TEXT, re.MULTILINE)
    actions = [action.value for action in Action]
    assert rows[: len(actions)] == actions
    told = set(inspect.signature(Router.decide).parameters) - {"self", "prompt", "tokenizer"}
    assert set(rows[len(actions) :]) == told
    for need in Needs:
        assert f"`{need.value}`:" in TEXT
    names = [str(each).split(":")[0] for each in inspect.signature(fit_history).parameters.values()]
    names[3:] = [f"{name}=None" for name in names[3:]]
    assert f"fit_history({', '.join([*names[:3], '*', *names[3:]])})" in TEXT
    assert list(inspect.signature(afit_history).parameters) == list(
        inspect.signature(fit_history).parameters
    )
    assert f"{TEMPLATE_TOKENS} tokens per message" in TEXT


def test_it_needs_no_framework() -> None:
    code = "import sys, vllm_advisor.routing; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    ours = {name.split(".")[1] for name in loaded if name.startswith("vllm_advisor.")}
    assert ours <= {"routing", "types", "errors", "units", "version"}
    heavy = {"pydantic", "jinja2", "rich", "typer", "pynvml", "asyncio", "socket"}
    assert not heavy & {name.split(".")[0] for name in loaded}
    assert "yaml" in loaded
