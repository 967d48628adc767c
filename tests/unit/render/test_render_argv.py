import pytest
from plan_example import ENGINE, chat_decisions, decision, instance

from vllm_advisor.errors import OutputError
from vllm_advisor.render.argv import flag_words, serve_argv, serve_command
from vllm_advisor.types.decision import Location
from vllm_advisor.types.engine import EngineArg


def words(dest, value):
    return flag_words(EngineArg(dest=dest, value=value, origin=decision("x.y", value)), ENGINE)


@pytest.mark.parametrize(
    ("dest", "value", "expected"),
    [
        ("max_model_len", 8192, ["--max-model-len", "8192"]),
        ("gpu_memory_utilization", 0.9, ["--gpu-memory-utilization", "0.9"]),
        ("kv_cache_dtype", "fp8", ["--kv-cache-dtype", "fp8"]),
        ("enable_chunked_prefill", True, ["--enable-chunked-prefill"]),
        ("enable_chunked_prefill", False, ["--no-enable-chunked-prefill"]),
        # The spelling that carries the dest's name wins over one that comes earlier.
        ("enforce_eager", True, ["--enforce-eager"]),
        # JSON: compact, keys sorted, one word.
        (
            "hf_overrides",
            {"rope_parameters": {"rope_type": "yarn", "factor": 4.0}, "a": None},
            ["--hf-overrides", '{"a":null,"rope_parameters":{"factor":4.0,"rope_type":"yarn"}}'],
        ),
        ("allowed_origins", ["https://a.example"], ["--allowed-origins", '["https://a.example"]']),
        ("served_model_name", ["chat", "m"], ["--served-model-name", "chat", "m"]),
        ("served_model_name", "chat", ["--served-model-name", "chat"]),
        ("cudagraph_capture_sizes", (1, 2, 4), ["--cudagraph-capture-sizes", "1", "2", "4"]),
        (
            "lora_modules",
            [{"path": "p", "name": "n"}],
            ["--lora-modules", '{"name":"n","path":"p"}'],
        ),
        # argparse's append: the flag once per value.
        ("middleware", ["a.b", "c.d"], ["--middleware", "a.b", "--middleware", "c.d"]),
        ("hf_token", True, ["--hf-token"]),
        # A value that looks like a flag is bound with "=".
        ("seed", -1, ["--seed=-1"]),
        ("chat_template", "--x", ["--chat-template=--x"]),
        ("served_model_name", ["-m"], ["--served-model-name=-m"]),
        ("chat_template", "", ["--chat-template", ""]),
    ],
)
def test_an_argument_becomes_words(dest, value, expected):
    assert words(dest, value) == expected


@pytest.mark.parametrize(
    ("dest", "value", "says"),
    [
        ("no_such_flag", 1, "vLLM 0.33.0 has no such flag"),
        ("disable_log_stats", False, "no spelling"),  # no negation, so false cannot be written
        ("enable_chunked_prefill", "yes", "switch"),
        ("max_model_len", None, "takes a tokens"),
        ("max_model_len", True, "takes a tokens"),
        ("served_model_name", [], "empty list"),
        ("served_model_name", ["a", "-b"], "'-b' would be read as a flag"),
        ("kv_cache_dtype", ["auto", "fp8"], "takes one value"),
        ("chat_template", "a\0b", "no command line can carry"),
        ("chat_template", "a\ud800b", "no command line can carry"),
    ],
)
def test_what_cannot_be_written_is_an_error(dest, value, says):
    with pytest.raises(OutputError, match=says) as caught:
        words(dest, value)
    assert caught.value.fix


def test_an_error_names_the_place_of_an_argument_that_was_parsed():
    arg = EngineArg(dest="nope", value=1, origin=Location(file="run.sh", line=3, column=7))
    with pytest.raises(OutputError) as caught:
        flag_words(arg, ENGINE)
    assert caught.value.where == "run.sh:3:7"


def test_the_model_comes_first_and_arguments_keep_their_order():
    assert serve_argv(instance("chat", chat_decisions()), ENGINE) == [
        "example-org/Example-8B-Instruct",
        "--port",
        "8000",
        "--max-model-len",
        "8192",
        "--gpu-memory-utilization",
        "0.9",
        "--enable-chunked-prefill",
    ]


def test_the_command_is_quoted_for_a_shell():
    made = instance("a", (decision("a.hf", {"k": "it's"}, "hf_overrides"),), model="./my model")
    # A single quote inside single quotes: close, a quote in double quotes, open again.
    assert serve_command(made, ENGINE) == (
        """vllm serve './my model' --hf-overrides '{"k":"it'"'"'s"}'"""
    )


@pytest.mark.parametrize("model", ["", "-rf", "--port"])
def test_a_model_that_would_be_read_as_a_flag_is_refused(model):
    with pytest.raises(OutputError, match="read as a flag"):
        serve_argv(instance("a", (), model=model), ENGINE)
