"""The command as check reads it."""

from __future__ import annotations

from vllm_advisor import check
from vllm_advisor.plugin.words import environment_words, model_word, serve_command, served_names


def test_commands() -> None:
    assert serve_command(["/bin/vllm", "serve", "m", "--port", "1"]) == [
        *("vllm", "serve", "m", "--port", "1")
    ]
    assert serve_command(["x/api_server.py", "--model", "m"])[:3] == [
        *("python3", "-m", "vllm.entrypoints.openai.api_server")
    ]
    assert serve_command(["vllm"]) is None
    assert serve_command(["vllm", "serve", "--help=all"]) is None
    assert serve_command([]) is None


def test_secrets_stay_out() -> None:
    words = ["vllm", "serve", "m", "--api-key", "k1", "k2", "--hf_token=t", "--port", "8000"]
    given = serve_command(words)
    assert given == [
        *("vllm", "serve", "m", "--api-key", "$VLLM_API_KEY", "$VLLM_API_KEY"),
        *("--hf_token=$HF_TOKEN", "--port", "8000"),
    ]


def test_environment() -> None:
    environ = {
        "VLLM_API_KEY": "secret",
        "VLLM_SERVER_DEV_MODE": "1",
        "VLLM_ADVISOR": "strict",
        "VLLM_PORT": "tcp://10.0.0.1:80",
        "VLLM_ROUTER_SERVICE_HOST": "10.0.0.1",
        "VLLM_ROUTER_PORT_80_TCP_ADDR": "10.0.0.1",
        "HF_TOKEN": "secret",
        "PATH": "/bin",
    }
    assert environment_words(environ) == [
        "VLLM_API_KEY=$VLLM_API_KEY",
        "VLLM_PORT=tcp://10.0.0.1:80",
        "VLLM_SERVER_DEV_MODE=1",
    ]


def test_served_names() -> None:
    assert served_names(["vllm", "serve", "m", "--served-model-name", "a", "b", "--port", "1"]) == (
        *("a", "b"),
    )
    assert served_names(["vllm", "serve", "m", "--served-model-name=a"]) == ("a",)
    assert served_names(["vllm"]) == ()


def test_model_words() -> None:
    assert model_word(["vllm", "serve", "m", "--port", "1"]) == "m"
    assert model_word(["vllm", "serve", "--port", "1", "--model", "m"]) == "m"
    assert model_word(["vllm", "serve", "--model=m"]) == "m"
    assert model_word(["vllm", "serve"]) == ""


def test_check_knows_the_variables() -> None:
    words = ["VLLM_ADVISOR=strict", "VLLM_ADVISOR_PLAN=plan.yaml", "vllm", "serve"]
    found = check([*words, "meta-llama/Llama-3.1-8B-Instruct"]).findings
    assert "ENV001" not in {f.rule for f in found}
