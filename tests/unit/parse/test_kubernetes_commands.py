"""Commands of containers as Kubernetes joins them, each word at its place in the manifest."""

from __future__ import annotations

import pytest
from read_sources_here import codes, only, place, read

POD = """\
kind: Pod
spec:
  containers:
"""


def test_command_and_args_are_one_command() -> None:
    server = only("""\
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: chat, namespace: llm}
        spec:
          template:
            spec:
              containers:
                - name: vllm
                  image: vllm/vllm-openai:v0.33.0
                  command: [vllm, serve]
                  args:
                    - org/model
                    - --max-model-len
                    - "8192"
                    - --port=9000
        """)
    assert server.name == "Deployment/llm/chat"
    assert server.command.model == "org/model"
    assert server.command.engine_args.as_dict() == {"max_model_len": 8192, "port": 9000}
    # The first character of the value, behind the quotes, and of the word with the flag.
    assert (place(server, "max_model_len"), place(server, "port")) == ("14:16", "15:15")
    assert server.command.entrypoint == "vllm serve"


SCRIPT = """\
kind: Pod
metadata: {name: p}
spec:
  containers:
    - name: a
      env: [{name: LEN, value: "4096"}]
      command: ["/bin/bash", "-lc"]
      args:
        - |
          set -e
          export HF_HOME=/data
          exec vllm serve org/m \\
            --max-model-len $LEN \\
            --max-num-seqs 16
"""


def test_a_text_for_a_shell_is_read_where_it_stands() -> None:
    server = only(SCRIPT)
    args = server.command.engine_args
    assert args.as_dict() == {"max_model_len": 4096, "max_num_seqs": 16}
    assert place(server, "max_num_seqs") == "14:28"
    assert str(server.command.location) == "f.yaml:12:16"
    assert server.command.env["HF_HOME"] == "/data"
    assert server.command.env["LEN"] == "4096"


def test_a_shell_gets_the_rest_as_its_arguments() -> None:
    """Word 0 is the script's own name; "$@" are those behind it, at their own places."""
    server = only("""\
        kind: Pod
        spec:
          containers:
            - command: [bash, -euc, 'exec vllm serve "$@" --enforce-eager', name]
              args: [org/m, --max-model-len, "16"]
        """)
    assert server.command.model == "org/m"
    assert server.command.engine_args.as_dict() == {"max_model_len": 16, "enforce_eager": True}
    assert place(server, "max_model_len") == "5:39"


@pytest.mark.parametrize(
    ("word", "becomes"),
    [
        ("$(A)", "one"),
        ("$(B)", "one-two"),
        ("$$(A)", "$(A)"),
        ("x$(A)y", "xoney"),
        ("$A", "$A"),
    ],
)
def test_variables_of_the_container_are_put_in(word: str, becomes: str) -> None:
    server = only(f"""\
        kind: Pod
        spec:
          containers:
            - image: vllm/vllm-openai:v0.33.0
              env: [{{name: A, value: one}}, {{name: B, value: $(A)-two}}]
              args: ["{word}"]
        """)
    assert server.command.model == becomes
    assert server.command.unresolved == ()


def test_what_only_the_cluster_knows_is_unresolved() -> None:
    server = only("""\
        kind: Pod
        spec:
          containers:
            - image: vllm/vllm-openai:v0.33.0
              env: [{name: S, valueFrom: {secretKeyRef: {name: s, key: k}}}]
              args: [org/m, --seed, $(S), --api-key, $(GONE)]
        """)
    assert [(u.dest, u.text) for u in server.command.unresolved] == [
        ("seed", "$(S)"),
        ("api_key", "$(GONE)"),
    ]
    assert server.container is not None
    assert [(e.source, e.reference) for e in server.container.env] == [("secret", "s/k")]


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ('args: ["--model org/m --max-model-len 8192"]', "args-as-one-string"),
        ("args: --model org/m --max-model-len 8192", "args-as-one-string"),
        ('command: ["vllm serve org/m --max-model-len 8192"]', "command-as-one-string"),
        ("command: vllm serve org/m --max-model-len 8192", "command-as-one-string"),
    ],
)
def test_one_text_for_several_words_is_a_problem_and_read_on(written: str, code: str) -> None:
    server = only(f"""\
        kind: Pod
        spec:
          containers:
            - image: vllm/vllm-openai:v0.33.0
              {written}
        """)
    assert codes(server) == [code]
    assert server.command.model == "org/m"
    assert server.command.engine_args.as_dict() == {"max_model_len": 8192}
    line, column = map(int, place(server, "max_model_len").split(":"))
    assert (line, column) == (5, 7 + written.index("8192"))


@pytest.mark.parametrize(
    "args",
    ['["org/name with blank"]', '[\'{"a": "b - c"}\']', "[org/m]", '["-x"]'],
)
def test_one_word_is_one_word(args: str) -> None:
    server = only(f"{POD}    - {{image: 'vllm/vllm-openai:v0.33.0', args: {args}}}\n")
    assert not {"args-as-one-string"} & set(codes(server))


@pytest.mark.parametrize(
    ("image", "entrypoint"),
    [
        ("vllm/vllm-openai:v0.10.2", "vllm.entrypoints.openai.api_server"),
        ("vllm/vllm-openai:v0.33.0", "vllm serve"),
        ("vllm/vllm-openai:latest", "vllm serve"),
        ("mirror.example.com:5000/vllm/vllm-openai:v0.8.5", "vllm.entrypoints.openai.api_server"),
    ],
)
def test_an_image_starts_the_server_of_its_version(image: str, entrypoint: str) -> None:
    server = only(f'{POD}    - {{image: "{image}", args: ["--model", "org/m"]}}\n')
    assert server.command.entrypoint == entrypoint
    assert server.command.model == "org/m"
    assert server.command.image == image


def test_arguments_that_repeat_the_image_s_command() -> None:
    text = f"{POD}    - {{image: 'vllm/vllm-openai:v0.33.0', args: [vllm, serve, org/m]}}\n"
    assert codes(only(text)) == ["entrypoint-repeated"]
    assert codes(only(text.replace("args: [vllm", "command: [vllm"))) == []


@pytest.mark.parametrize(
    "container",
    [
        "{image: nginx, args: ['--model', x]}",
        "{image: vllm/vllm-openai, command: [sleep, '9']}",
        "{image: example/vllm-router:v1, args: ['--port', '1']}",
        "{image: busybox}",
        "{command: [sh, -c, 'echo vllm serve m']}",
    ],
)
def test_what_is_no_server(container: str) -> None:
    assert read(f"{POD}    - {container}\n").instances == ()


def test_a_wrapper_in_front_is_passed_over() -> None:
    words = "[tini, --, env, VLLM_USE_V1=1, /opt/bin/vllm, serve, org/m]"
    server = only(f"{POD}    - command: {words}\n")
    assert server.command.model == "org/m"
    assert server.command.env == {"VLLM_USE_V1": "1"}
