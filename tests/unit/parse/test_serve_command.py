"""Reading commands: values as vLLM takes them, and each mistake under its name."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vllm_advisor.errors import InputError
from vllm_advisor.knowledge.engines import load_engine
from vllm_advisor.parse.serve_command import (
    ParsedCommand,
    Token,
    parse_serve_command,
    parse_shell_script,
)
from vllm_advisor.types.decision import Location

ENGINE = load_engine("0.33.0")
OLDER = load_engine("0.32.0")


def read(text: str, *, engine: Any = ENGINE) -> ParsedCommand:
    (command,) = parse_shell_script(text, "serve.sh", engine)
    return command


def values(text: str) -> dict[str, Any]:
    """Flags of a command that must have no fault."""
    command = read(f"vllm serve m {text}")
    assert (command.model, command.unknown, command.problems) == ("m", (), ())
    return command.engine_args.as_dict()


def codes(text: str) -> list[str]:
    return [problem.code for problem in read(f"vllm serve m {text}").problems]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("--tensor-parallel-size 2", {"tensor_parallel_size": 2}),
        ("-tp 2 -pp=4 -dcp 8", {
            "tensor_parallel_size": 2, "pipeline_parallel_size": 4, "decode_context_parallel_size": 8,
        }),
        ("--max_model_len=32k", {"max_model_len": 32_000}),
        ("--max-model-len 32K", {"max_model_len": 32_768}),
        ("--max-model-len auto", {"max_model_len": -1}),
        ("--max-model-len -1", {"max_model_len": -1}),
        ("--kv-cache-memory-bytes 20G", {"kv_cache_memory_bytes": 20 << 30}),
        ("--gpu-memory-utilization 0.9", {"gpu_memory_utilization": 0.9}),
        ("-q fp8", {"quantization": "fp8"}),
        ("-qfp8 -O3", {"quantization": "fp8", "optimization_level": "3"}),
        ("--enable-prefix-caching", {"enable_prefix_caching": True}),
        ("--no-enable-prefix-caching", {"enable_prefix_caching": False}),
        ("--disable-prefix-caching", {"enable_prefix_caching": False}),
        ("--disable-log-stats", {"disable_log_stats": True}),
        ("--served-model-name a b --port 1", {"served_model_name": ["a", "b"], "port": 1}),
        ("--cudagraph-capture-sizes 1 2 4", {"cudagraph_capture_sizes": [1, 2, 4]}),
        ("--middleware a --middleware b", {"middleware": ["a", "b"]}),
        ("--hf-token", {"hf_token": True}),
        ("--hf-token t", {"hf_token": "t"}),
        ("""--hf-overrides '{"a": {"b": 1}}'""", {"hf_overrides": {"a": {"b": 1}}}),
        ("--hf-overrides.rope_parameters.factor 4 --hf_overrides.rope_parameters.rope_type=yarn",
         {"hf_overrides": {"rope_parameters": {"factor": 4, "rope_type": "yarn"}}}),
        ("--hf-overrides.a+ 1,2 --hf-overrides.a+ 3", {"hf_overrides": {"a": ["1", "2", "3"]}}),
        ("-cc.mode=3", {"compilation_config": {"mode": 3}}),
        ("""--kv-transfer-config '{"kv_connector": "X", "kv_port": 1k}'""",
         {"kv_transfer_config": {"kv_connector": "X", "kv_port": 1000}}),
        ("--quantization None", {"quantization": None}),
        ("--moe-backend FlashInfer-Cutlass", {"moe_backend": "flashinfer_cutlass"}),
        ("--device-ids 0,GPU-1", {"device_ids": [0, "GPU-1"]}),
    ],
)  # fmt: skip
def test_values(text: str, expected: dict[str, Any]) -> None:
    assert values(text) == expected


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("--enable-chunked-prefill=False", "boolean-with-value"),
        ("--enable-chunked-prefill False", "boolean-with-value"),
        ("--enforce-eager true", "boolean-with-value"),
        ("--tensor-parallel-size two", "invalid-value"),
        ("--tensor-parallel-size 2.0", "invalid-value"),
        ("--max-model-len '32 k'", "invalid-value"),
        ("--max-model-len 1.5K", "invalid-value"),  # vLLM: decimals only with k, m, g
        ("--max-num-batched-tokens auto", "invalid-value"),
        ("--gpu-memory-utilization 90%", "invalid-value"),
        ("--dtype bf16", "invalid-choice"),
        ("--kv-cache-dtype int8", "invalid-choice"),
        ("--quantization gguf", "invalid-choice"),
        ("--cudagraph-capture-sizes 1,2,4", "list-as-comma-string"),
        ("--max-model-len", "missing-value"),
        ("--max-model-len --port 1", "missing-value"),
        ("--hf-overrides.a", "missing-value"),
        ("--port.a 1", "dotted-key"),
        ("--device cuda", "ambiguous-flag"),
        ("'--port 8000'", "flag-and-value-in-one-word"),
        ("extra", "extra-argument"),
        ('--speculative-config {"method":"mtp"}', "json-unquoted"),
        ("--speculative-config \"'{}'\"", "json-embedded-quotes"),
        ("--hf-overrides \"'{}'\"", "json-embedded-quotes"),
        ("--hf-overrides factor=4", "json-invalid"),
        ("--speculative-config \"{'method': 'mtp'}\"", "json-invalid"),
        ("--diffusion-config '{{}}'", "json-double-braces"),
        ("--compilation-config 3", "json-invalid"),
        ("--compilation-config '{\"level\": 3}'", "json-unknown-key"),
        ("-cc.level 3", "json-unknown-key"),
        ("--allowed-origins '{}'", "json-invalid"),
    ],
)  # fmt: skip
def test_mistakes_have_names(text: str, code: str) -> None:
    assert codes(text) == [code]


def test_a_problem_says_where_and_what_to_write() -> None:
    command = read("vllm serve m \\\n  --enable-chunked-prefill=False\n")
    (problem,) = command.problems
    assert str(problem.location) == "serve.sh:2:3"
    assert problem.dest == "enable_chunked_prefill"
    assert problem.fix == "write --no-enable-chunked-prefill"
    assert "enable_chunked_prefill" not in command.engine_args.as_dict()


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("--enforce-eager=True", "write --enforce-eager alone"),
        ("--no-enforce-eager=false", "write --enforce-eager"),
        ("--disable-log-stats=false", "leave out --disable-log-stats"),
    ],
)
def test_fix_of_a_boolean_with_a_value(text: str, fix: str) -> None:
    (problem,) = read(f"vllm serve m {text}").problems
    assert problem.fix == fix


def test_unknown_flags_keep_their_values_and_name_the_nearest() -> None:
    command = read("vllm serve org/m --swap-space 4 --max-modal-len 5 --enforce-eager")
    assert [(u.token, u.values) for u in command.unknown] == [
        ("--swap-space", ("4",)),
        ("--max-modal-len", ("5",)),
    ]
    assert "--max-model-len" in command.unknown[1].close
    assert str(command.unknown[0].location) == "serve.sh:1:18"
    assert command.engine_args.as_dict() == {"enforce_eager": True}


def test_an_unknown_flag_does_not_take_the_model() -> None:
    assert read("vllm serve --enable-metrics org/m").model == "org/m"


def test_flags_of_another_version_are_unknown() -> None:
    text = "vllm serve m --disable-prefix-caching"
    assert [u.token for u in read(text, engine=OLDER).unknown] == ["--disable-prefix-caching"]
    assert read(text).unknown == ()


def test_abbreviations_and_deprecated_flags_are_noted() -> None:
    command = read("vllm serve m --kv-cache-memory=1G --mamba-cache-mode align")
    notes = [note.message for note in command.notes]
    assert notes[0] == "--kv-cache-memory is short for --kv-cache-memory-bytes"
    assert "deprecated" in notes[1]
    assert command.engine_args.get("kv_cache_memory_bytes") == 1 << 30


def test_the_last_of_two_values_counts() -> None:
    command = read("vllm serve m --port 1 --max-num-seqs 2 --port 3")
    assert command.engine_args.as_dict() == {"max_num_seqs": 2, "port": 3}
    assert [note.message for note in command.notes] == [
        "--port is given twice; the last one counts"
    ]


def test_dotted_keys_replace_the_whole_object() -> None:
    command = read("""vllm serve m --hf-overrides '{"a": 1}' --hf-overrides.b 2""")
    assert command.engine_args.as_dict() == {"hf_overrides": {"b": 2}}
    assert "replace this whole object" in command.notes[0].message


def test_every_value_knows_its_place() -> None:
    command = read("vllm serve m \\\n  --port=1 \\\n  --max-num-seqs 8")
    origins = {arg.dest: str(arg.origin) for arg in command.engine_args}
    assert origins == {"port": "serve.sh:2:3", "max_num_seqs": "serve.sh:3:18"}
    assert str(command.engine_args.model_origin) == "serve.sh:1:12"


SCRIPT = """\
#!/usr/bin/env bash
# Serves the long documents.
set -euo pipefail

export VLLM_USE_FLASHINFER_SAMPLER=1
args=(
  --max-model-len 131072        # the longest prompt and answer
  # halves the cache
  --kv-cache-dtype fp8
  --hf-overrides '{"max_position_embeddings": 131072}'
  --port "${PORT:-8000}"
)
HF_HUB_OFFLINE=1 exec vllm serve meta-llama/Llama-3.1-8B-Instruct "${args[@]}" "$@"
"""


def test_a_start_script() -> None:
    command = read(SCRIPT)
    assert command.model == "meta-llama/Llama-3.1-8B-Instruct"
    assert command.engine_args.as_dict() == {
        "max_model_len": 131072,
        "kv_cache_dtype": "fp8",
        "hf_overrides": {"max_position_embeddings": 131072},
        "port": 8000,
    }
    assert command.env == {"VLLM_USE_FLASHINFER_SAMPLER": "1", "HF_HUB_OFFLINE": "1"}
    assert str(command.env_locations["HF_HUB_OFFLINE"]) == "serve.sh:13:1"
    assert (command.unknown, command.problems, command.notes, command.unresolved) == (
        (), (), (), (),
    )  # fmt: skip
    assert str(command.engine_args.args[1].origin) == "serve.sh:9:20"


@pytest.mark.parametrize(
    "text",
    [
        "/opt/venv/bin/vllm serve org/m --port 9",
        "CUDA_VISIBLE_DEVICES=0 nohup vllm serve org/m --port 9 > log 2>&1 &",
        "uv run vllm serve org/m --port 9",
        "python3 -m vllm.entrypoints.openai.api_server --model org/m --port 9",
        "python -m vllm.entrypoints.openai.api_server --port 9 --model=org/m",
        "python -m vllm.entrypoints.cli.main serve org/m --port 9",
        "docker run --gpus all vllm/vllm-openai:v0.33.0 --model org/m --port 9",
        "docker run --gpus all vllm/vllm-openai:v0.33.0 org/m --port 9",
        "docker run my/image vllm serve org/m --port 9",
        "bash -c 'vllm serve org/m --port 9'",
        "ssh host 'cd /srv && vllm serve org/m --port 9'",
        "if true; then vllm serve org/m --port 9; fi",
        "vllm serve --model org/m --port 9",
        "vllm serve --port 9 -- org/m",
    ],
)
def test_ways_to_start_a_server(text: str) -> None:
    command = read(text)
    assert (command.model, command.engine_args.as_dict()) == ("org/m", {"port": 9})
    assert (command.unknown, command.problems) == ((), ())


def test_container() -> None:
    command = read("docker run -e HF_TOKEN=x --env=A=1 vllm/vllm-openai:v0.33.0 org/m -tp 2")
    assert command.image == "vllm/vllm-openai:v0.33.0"
    assert command.env == {"HF_TOKEN": "x", "A": "1"}


def test_several_commands() -> None:
    text = "vllm serve a --port 1 &\nvllm serve b --port 2 &\nwait"
    commands = parse_shell_script(text, "serve.sh", ENGINE)
    assert [(c.model, c.engine_args.get("port"), c.location.line) for c in commands] == [
        ("a", 1, 1),
        ("b", 2, 2),
    ]


def test_place_of_a_fault_inside_a_quoted_script() -> None:
    command = read("bash -c 'set -e\n  vllm serve m --nope'")
    assert str(command.unknown[0].location) == "serve.sh:2:16"


@pytest.mark.parametrize("break_", ["", " # why", " \\ "])
def test_a_lost_continuation(break_: str) -> None:
    command = read(f"vllm serve m --port 1{break_}\n  --max-num-seqs 8\n")
    (problem,) = command.problems
    assert (problem.code, str(problem.location)) == ("line-continuation-missing", "serve.sh:2:3")
    assert command.engine_args.as_dict() == {"port": 1}


def test_a_comment_inside_a_continued_command_ends_it() -> None:
    command = read("vllm serve m \\\n  # why\n  --max-num-seqs 8\n")
    assert [problem.code for problem in command.problems] == ["line-continuation-missing"]


def test_values_only_the_shell_knows() -> None:
    command = read('vllm serve "$MODEL" -tp $TP --port "${PORT:-8000}" $EXTRA --enforce-eager')
    assert [(u.dest, u.text) for u in command.unresolved] == [
        ("tensor_parallel_size", "$TP"),
        ("model", "$MODEL"),
        ("", "$EXTRA"),
    ]
    assert command.engine_args.as_dict() == {"port": 8000, "enforce_eager": True}
    assert (command.model, command.problems) == ("$MODEL", ())


def test_the_positional_model_of_the_old_module_is_ignored_by_vllm() -> None:
    command = read("python -m vllm.entrypoints.openai.api_server org/m")
    assert [problem.code for problem in command.problems] == ["positional-model-with-api-server"]
    assert command.model == "org/m"


def test_the_demonstration_server() -> None:
    command = read("python -m vllm.entrypoints.api_server --model org/m")
    assert [problem.code for problem in command.problems] == ["wrong-entrypoint"]


def test_no_model() -> None:
    command = read("vllm serve --port 1")
    assert command.model == "Qwen/Qwen3-0.6B"  # vLLM's default
    assert "serves its default" in command.notes[0].message
    assert codes_of("vllm serve --served-model-name a") == ["missing-model"]
    assert read("vllm serve --config c.yaml").model == ""


def codes_of(text: str) -> list[str]:
    return [problem.code for problem in read(text).problems]


def test_two_models() -> None:
    command = read("vllm serve a --model b")
    assert command.model == "b"  # vLLM moves --model to the front
    assert [problem.code for problem in command.problems] == ["extra-argument"]


def test_arguments_without_a_command() -> None:
    command = read("--max-model-len 1000000 --max-num-seqs 4")
    assert (command.model, command.notes) == ("", ())
    assert command.engine_args.as_dict() == {"max_model_len": 1_000_000, "max_num_seqs": 4}
    array = read("""ARGS+=("--speculative-config" "'{\\"method\\":\\"mtp\\"}'")""")
    assert [problem.code for problem in array.problems] == ["json-embedded-quotes"]


def test_container_arguments_as_tokens() -> None:
    where = Location(file="pod.yaml", line=7, column=9)
    tokens = [("--model", where), ("org/m", where), ("--nope", where)]
    command = parse_serve_command(tokens, ENGINE, env={"A": Token("1", where)}, image="x")
    assert (command.model, command.env, command.image) == ("org/m", {"A": "1"}, "x")
    assert command.unknown[0].location == where


@pytest.mark.parametrize(
    "text", ["", "echo vllm serve m", "pip install vllm\n", "# vllm serve m", 'echo "vllm serve m"']
)
def test_no_command(text: str) -> None:
    with pytest.raises(InputError, match="no vllm command found") as caught:
        parse_shell_script(text, "serve.sh", ENGINE)
    assert caught.value.where == "serve.sh"


WORDS = st.text(
    st.characters(codec="utf-8", exclude_characters="\0\r", categories=("L", "N", "P", "S", "Zs")),
    max_size=12,
)


@given(st.lists(WORDS, max_size=6), st.lists(st.sampled_from(sorted(ENGINE.flags)), max_size=3))
def test_nothing_a_person_writes_raises(words: list[str], dests: list[str]) -> None:
    flags = [ENGINE.flags[dest].spellings[0] for dest in dests]
    (command,) = parse_shell_script(
        shlex.join(["vllm", "serve", *flags, *words, *flags]), "s", ENGINE
    )
    assert command.entrypoint == "vllm serve"


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "max_model_len": st.integers(1, 2**31),
            "gpu_memory_utilization": st.floats(0.01, 1),
            "enforce_eager": st.booleans(),
            "served_model_name": st.lists(
                st.from_regex(r"[a-z][a-z \"'$]{0,8}", fullmatch=True), min_size=1, max_size=3
            ),
            "hf_overrides": st.dictionaries(
                st.text(max_size=5), st.text(max_size=5) | st.integers() | st.booleans()
            ),
        },
    )
)
def test_a_written_command_reads_back(arguments: dict[str, Any]) -> None:
    import json

    words = ["vllm", "serve", "org/m"]
    for dest, value in arguments.items():
        flag = ENGINE.flags[dest]
        if isinstance(value, bool):
            words.append((flag.spellings if value else flag.negations)[0])
        elif isinstance(value, dict):
            words += [flag.spellings[0], json.dumps(value)]
        else:
            items = value if isinstance(value, list) else [value]
            words += [flag.spellings[0], *map(str, items)]
    command = read(shlex.join(words))
    assert (command.unknown, command.problems) == ((), ())
    assert command.engine_args.as_dict() == arguments
