"""Our reader of commands and vLLM's parser say the same of every command."""

from __future__ import annotations

import dataclasses
import enum
import json
import os
import shlex
import subprocess
from argparse import Namespace
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vllm_advisor.knowledge.engines import load_engine
from vllm_advisor.parse.serve_command import ParsedCommand, parse_shell_script
from vllm_advisor.types.engine import EngineFacts, Flag

pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore")]

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
SCRIPTS = sorted(GOLDEN.glob("*/expected/serve-*.sh"))
FAKE_VLLM = '#!/bin/sh\nexec python3 -c "import json, sys; print(json.dumps(sys.argv[1:]))" "$@"\n'
# What vLLM refuses only after its parser, or silently drops: our reader says it at once.
REFUSED_LATER = ("json-invalid", "json-embedded-quotes")
CHOICES_CHECKED_LATER = ("kv_cache_dtype", "quantization")
ACCEPTED = [
    "vllm serve m -tp 2 -pp=2 -dcp 2 -q fp8 -qfp8 -O3",
    "vllm serve m -O 2 --max_model_len 32k --max-num-batched-tokens=16K",
    "vllm serve m --max-model-len auto --gpu-memory-util 0.9",
    "vllm serve m --max-model-len -1 --seed -5",
    "vllm serve --tensor-parallel-size 2 --model m",
    "vllm serve m --no-enable-prefix-caching --enable-chunked-prefill",
    """vllm serve m --hf-overrides '{"rope_parameters": {"rope_type": "yarn", "factor": 4.0}}'""",
    "vllm serve m --hf-overrides.rope_parameters.factor 4 --hf_overrides.a-b.c_d=x",
    "vllm serve m --hf-overrides.a+ x,y --hf-overrides.a+ z --hf-overrides.n 8k",
    """vllm serve m --hf-overrides '{"a": 1}' --hf-overrides.b 2""",
    "vllm serve m --served-model-name a b c --port 9000",
    "vllm serve m --cudagraph-capture-sizes 1 2 4 8 --max-num-seqs 8 --max-num-seqs 16",
    "vllm serve m --middleware a.b --middleware c.d",
    "vllm serve m --device-ids 0,1 --moe-backend Flashinfer-Cutlass",
    "vllm serve m --hf-token --port 8001",
    "vllm serve m --speculative-config.method ngram --speculative-config.num_speculative_tokens 3",
    "vllm serve m -sc.method ngram -cc.mode=3",
    """vllm serve m --limit-mm-per-prompt '{"image": 2}' --kv-cache-memory-bytes 20G""",
    "vllm serve m --kv-cache-memory=1g --max-logprobs -1",
    "vllm serve m --quantization None",
    """vllm serve m --allowed-origins '["*"]' --api-key one two""",
]
REFUSED = [
    "vllm serve m --enable-chunked-prefill=False",
    "vllm serve m --enable-chunked-prefill False",
    "vllm serve m --enforce-eager True",
    "vllm serve m --swap-space 4",
    "vllm serve m --rope-scaling '{}'",
    "vllm serve m --device cuda",
    "vllm serve m --cudagraph-capture-sizes 1,2,4",
    "vllm serve m --limit-mm-per-prompt image=2",
    "vllm serve m --compilation-config 3",
    """vllm serve m --compilation-config '{"level": 3}'""",
    "vllm serve m --cc.mode 3",
    "vllm serve m --dtype bf16",
    "vllm serve m --log-level info",
    "vllm serve m '--port 8000'",
    "vllm serve m --max-model-len",
    "vllm serve m --max-model-len 8.5K",
    "vllm serve m --max-model-len '32 k'",
    "vllm serve m --max-num-batched-tokens auto",
    "vllm serve m --tensor-parallel-size two",
    "vllm serve m extra",
    "vllm serve a --model b",
    "vllm serve m --task embed",
    """vllm serve m --speculative-config "'{}'" """,
    "vllm serve m --diffusion-config '{{}}'",
    "vllm serve --served-model-name a",
]


def plain(value: Any) -> Any:
    """A parsed value as plain data; a configuration object as its class."""
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if dataclasses.is_dataclass(value):
        return type(value)
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return value


def differences(ours: ParsedCommand, real: Namespace, engine: EngineFacts) -> dict[str, Any]:
    """Dests whose value differs, given or not."""
    given = ours.engine_args.as_dict()
    found = {}
    if ours.model != real.model:
        found["model"] = (ours.model, real.model)
    for dest, flag in engine.flags.items():
        theirs = plain(getattr(real, dest, None))
        if dest == "model" or isinstance(theirs, type):
            continue
        mine = given.get(dest, flag.default)
        if mine != theirs and not (mine == [] and theirs == set()):
            found[dest] = (mine, theirs)
    return found


@pytest.fixture(scope="session")
def engine(installed_snapshot: dict[str, Any]) -> EngineFacts:
    return load_engine(installed_snapshot["version"])


@pytest.mark.parametrize("command", ACCEPTED)
def test_what_vllm_accepts_is_read_alike(
    command: str, engine: EngineFacts, parse_for_real: Callable[[list[str]], Namespace]
) -> None:
    (ours,) = parse_shell_script(command, "command", engine)
    real = parse_for_real(shlex.split(command)[1:])
    assert (ours.unknown, ours.problems) == ((), ())
    assert differences(ours, real, engine) == {}


@pytest.mark.parametrize("command", REFUSED)
def test_what_vllm_refuses_is_a_problem(
    command: str, engine: EngineFacts, parse_for_real: Callable[[list[str]], Namespace]
) -> None:
    (ours,) = parse_shell_script(command, "command", engine)
    assert ours.unknown or ours.problems
    with pytest.raises((SystemExit, ValueError)):
        parse_for_real(shlex.split(command)[1:])


LENGTHS = ["1", "8192", "32k", "32K", "1.5m", "2G", "-1", "auto"]
OBJECTS = ["{}", "[]", "{", "x", "3"]


def _value(flag: Flag) -> st.SearchStrategy[str]:
    good = {
        "int": st.integers(-5, 10**6).map(str),
        "float": st.floats(0, 100, allow_nan=False).map(repr),
        "tokens": st.sampled_from(LENGTHS),
        "tokens_or_auto": st.sampled_from(LENGTHS),
        "json": st.sampled_from(OBJECTS),
        "json_or_text": st.sampled_from(OBJECTS),
        "str": st.sampled_from(["a", "A-b", "x y", "a,b", "1"]),
    }[flag.kind]
    bad = st.sampled_from(["x", "1,2", "-x", "3.5", "'{}'", "true", "0x10", "1_000", " 7"])
    choices = [st.sampled_from(flag.choices)] if flag.choices and not flag.takes_object else []
    return st.one_of(good, *choices, bad)


@st.composite
def _words(draw: st.DrawFn, flags: list[Flag]) -> list[str]:
    flag = draw(st.sampled_from(flags))
    spelling = draw(st.sampled_from((*flag.spellings, *flag.negations)))
    if spelling.startswith("--") and draw(st.booleans()):
        spelling = "--" + spelling[2:].replace("-", "_")
    if spelling.startswith("--") and draw(st.integers(0, 4)) == 0:
        spelling = spelling[: draw(st.integers(4, len(spelling)))]
    if flag.kind == "bool":
        return [spelling] if draw(st.integers(0, 5)) else [f"{spelling}=true"]
    values = draw(st.lists(_value(flag), min_size=1, max_size=3 if flag.nargs == "+" else 1))
    form = draw(st.integers(0, 6))
    if form == 0:
        return [spelling]
    return [f"{spelling}={values[0]}"] if form < 3 else [spelling, *values]


def test_any_command_is_judged_as_vllm_judges_it(
    engine: EngineFacts, parse_for_real: Callable[[list[str]], Namespace]
) -> None:
    # --config reads a file; --lora-modules and --log-config-file have actions of their own;
    # --served-model-name and --model move words about before argparse.
    # --mm-processor-device takes the name of the platform, which is another one here.
    own = ("config", "lora_modules", "log_config_file", "mm_processor_device")
    flags = [flag for dest, flag in engine.flags.items() if dest not in own]

    @settings(max_examples=400, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(st.lists(_words(flags), min_size=1, max_size=3))
    def judge(parts: list[list[str]]) -> None:
        argv = ["serve", "org/model", *(word for part in parts for word in part)]
        if any(word.startswith(("--model", "--help", "--h")) for word in argv):
            return
        (ours,) = parse_shell_script(shlex.join(["vllm", *argv]), "command", engine)
        later = [
            p
            for p in ours.problems
            if p.code in REFUSED_LATER
            or (p.code == "invalid-choice" and p.dest in CHOICES_CHECKED_LATER)
        ]
        refused = bool(ours.unknown) or len(later) < len(ours.problems)
        real = None
        with suppress(SystemExit, ValueError, IndexError):
            real = parse_for_real(argv)
        if real is None:
            assert refused or later, f"vLLM refuses {argv}"
            return
        assert not refused, f"vLLM accepts {argv}: {ours.unknown} {ours.problems}"
        dests = {problem.dest for problem in later}
        found = differences(ours, real, engine)
        assert {d: v for d, v in found.items() if d not in dests} == {}, argv

    judge()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: f"{path.parts[-3]}/{path.name}")
def test_rendered_scripts_are_accepted_and_read_alike(
    script: Path,
    tmp_path: Path,
    engine: EngineFacts,
    assert_vllm_accepts: Callable[[list[str]], Namespace],
) -> None:
    """What bash hands to vLLM, vLLM takes, and our reader says the same of the script's text."""
    fake = tmp_path / "vllm"
    fake.write_text(FAKE_VLLM, encoding="utf-8")
    fake.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        ["bash", str(script)],
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    argv = json.loads(ran.stdout.splitlines()[-1])
    real = assert_vllm_accepts(argv)
    (ours,) = parse_shell_script(script.read_text(encoding="utf-8"), str(script), engine)
    assert (ours.unknown, ours.problems, ours.unresolved) == ((), (), ())
    assert differences(ours, real, engine) == {}


def test_assert_vllm_accepts_can_fail(
    assert_vllm_accepts: Callable[[list[str]], Namespace],
) -> None:
    assert assert_vllm_accepts(["serve", "m", "--max-model-len", "8k"]).max_model_len == 8000
    with pytest.raises(pytest.fail.Exception, match="--swap-space"):
        assert_vllm_accepts(["serve", "m", "--swap-space", "4"])
