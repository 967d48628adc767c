"""The house keeps its shape: layers, light imports, templates that never compute."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import vllm_advisor

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "vllm_advisor"
HEAVY = ("torch", "transformers", "vllm", "huggingface_hub", "pydantic", "jinja2", "yaml", "pynvml")
LONGEST = 310  # lines of a module; the design asks for a reason beyond 300


def imported(*words: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "vllm_advisor", *words],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rsplit("|", 1)[1].strip() for line in lines}


def test_help_loads_nothing_heavy() -> None:
    found = imported("--help")
    assert "vllm_advisor.cli.app" in found
    assert not {name for name in found if name.split(".")[0] in HEAVY}


def test_size_of_a_bundled_model_takes_no_detours() -> None:
    """Bundled profiles and given options need neither pydantic nor what speaks to the Hub."""
    found = imported("size", "llama-3.1-8b-instruct", "--gpu", "h100-sxm", "-tp", "2")
    assert "vllm_advisor.sizing.capacity" in found
    assert not {name for name in found if name.split(".")[0] in ("pydantic", "jinja2", "urllib3")}
    others = {"vllm_advisor.probe", "vllm_advisor.decide", "vllm_advisor.cli.plan"}
    assert not others & found


def test_json_output_draws_nothing() -> None:
    found = imported("plan", "interactive-chat", "--format", "json")
    assert "vllm_advisor.decide.plan" in found
    assert not {name for name in found if name.split(".")[0] in ("rich", "pynvml", "torch", "vllm")}


def test_layers() -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    if not lint.exists():
        pytest.skip("import-linter is not installed here")
    done = subprocess.run(
        [lint, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: p.name)
def test_modules_stay_readable(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST
    assert text.startswith(('"""', "#")), "a module says what its duty is"


def test_templates_never_compute() -> None:
    templates = sorted((ROOT / "templates").rglob("*.j2"))
    assert templates
    for path in templates:
        for expression in re.findall(r"\{[{%](.*?)[%}]\}", path.read_text(), re.DOTALL):
            bare = re.sub(r"'[^']*'|\"[^\"]*\"", "", expression).strip(" -")
            assert not re.search(r"[*/+]|\s-\s|if .*version", bare), f"{path.name}: {expression}"


def test_no_machine_paths_or_package_hosts() -> None:
    names = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    if not names:
        pytest.skip("not a git checkout")
    pattern = re.compile(
        r"(?<![\w.-])/(?:work|root|home(?!/vllm\b))/|https?://[^ )\"]*/(?:simple|packages)/"
    )
    for name in names:
        path = ROOT / name
        if path.suffix in (".py", ".md", ".yaml", ".toml", ".sh", ".j2", "") and path.is_file():
            found = pattern.search(path.read_text(encoding="utf-8", errors="replace"))
            assert not found, f"{name}: {found}"


def test_the_public_face() -> None:
    assert set(vllm_advisor.__all__) == {"__version__", "check", "estimate", "plan", "size"}
    for name in vllm_advisor.__all__:
        assert getattr(vllm_advisor, name)
    with pytest.raises(AttributeError):
        _ = vllm_advisor.absent  # type: ignore[attr-defined]
