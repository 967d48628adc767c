"""What a text is, by its name and by what stands in it."""

from __future__ import annotations

import pytest
from read_sources_here import read

from vllm_advisor.errors import InputError
from vllm_advisor.parse.images import read_image
from vllm_advisor.parse.kinds import KINDS, checked_kind, kind_of
from vllm_advisor.types.decision import Location

CASES = [
    ("serve.sh", "vllm serve m", "shell"),
    ("-", "vllm serve m --port 1", "shell"),
    ("-", "--model m\n--port 1", "shell"),
    ("start", 'ARGS+=("--port" "1")', "shell"),
    ("-", "docker run vllm/vllm-openai --model m", "shell"),
    ("vllm.service", "", "systemd"),
    ("-", "[Unit]\nDescription=x\n[Service]\nExecStart=vllm serve m", "systemd"),
    ("-", "Environment=A=b\nExecStart=/usr/bin/vllm serve m", "systemd"),
    ("any.yaml", "apiVersion: v1\nkind: Pod", "kubernetes"),
    ("-", '{"kind": "Pod", "spec": {}}', "kubernetes"),
    ("-", "# a comment\n---\nkind: Pod", "kubernetes"),
    ("-", "containers: []", "kubernetes"),
    ("-", 'args: ["--model", "m"]', "kubernetes"),
    ("-", "- name: a\n  image: b\n  args: []", "kubernetes"),
    ("-", "- --model\n- m", "kubernetes"),
    ("-", "livenessProbe: {}", "kubernetes"),
    ("values.yaml", "servingEngineSpec: {}", "helm-production-stack"),
    ("-", "routerSpec: {resources: {}}", "helm-production-stack"),
    ("-", "- name: a\n  modelURL: b\n", "helm-production-stack"),
    ("-", "services:\n  a: {image: x}", "compose"),
    ("-", "vllm:\n  image: x\n  command: --model m", "compose"),
    ("-", "command: >\n  --model m", "compose"),
    ("-", "command: vllm serve m", "compose"),
    ("-", "command: [vllm, serve, m]", "kubernetes"),
    ("-", "healthcheck: {test: [CMD]}", "compose"),
    ("compose.override.yml", "volumes: {}", "compose"),
    ("-", "model: m\nmax-model-len: 8192\nport: 1", "config"),
    ("-", "max_model_len: 8192", "config"),
    ("plan.yaml", "schema_version: '1'\ninstances: []\ndecisions: []", "plan"),
    ("Dockerfile", "FROM x", "dockerfile"),
    ("vllm.Dockerfile", "FROM x", "dockerfile"),
    ("-", "# x\nFROM x\nCMD y", "dockerfile"),
    ("-", "echo hello", None),
    ("-", "", None),
    ("routing.yaml", "schema_version: '1'\nmodel: m\nroutes: []\nclasses: []", None),
    ("a.yaml", "- 1\n- 2", None),
    ("-", "[not, yaml", None),
]


@pytest.mark.parametrize(("name", "text", "kind"), CASES)
def test_the_kind_of_a_text(name: str, text: str, kind: str | None) -> None:
    assert kind_of(name, text) == kind


def test_every_kind_is_found_by_some_text() -> None:
    assert {kind for *_, kind in CASES if kind} | {"serve"} == set(KINDS)


def test_a_kind_that_is_named_wrongly() -> None:
    assert checked_kind("compose") == "compose"
    with pytest.raises(InputError, match="no kind of source 'helm'") as refused:
        checked_kind("helm")
    assert "helm-production-stack" in refused.value.fix


def test_a_text_of_no_kind_asks_for_it() -> None:
    with pytest.raises(InputError, match="nothing that starts vLLM") as refused:
        read("a: b\n")
    assert "--kind" in refused.value.fix


@pytest.mark.parametrize(
    ("text", "repository", "tag", "version", "official"),
    [
        ("vllm/vllm-openai:v0.11.0", "vllm/vllm-openai", "v0.11.0", "0.11.0", True),
        ("vllm/vllm-openai", "vllm/vllm-openai", "", "", True),
        ("vllm/vllm-openai:latest", "vllm/vllm-openai", "latest", "", True),
        ("vllm/vllm-openai:nightly-0123abc", "vllm/vllm-openai", "nightly-0123abc", "", True),
        ("vllm/vllm-openai:v0.9.0.1", "vllm/vllm-openai", "v0.9.0.1", "0.9.0.1", True),
        ("vllm/vllm-openai:v0.33.0-cu129", "vllm/vllm-openai", "v0.33.0-cu129", "0.33.0", True),
        ("vllm/vllm-openai:v0.8.5.post1", "vllm/vllm-openai", "v0.8.5.post1", "0.8.5.post1", True),
        ("r.io:5000/a/vllm-openai-rocm:v1.2.3", "r.io:5000/a/vllm-openai-rocm", "v1.2.3", "1.2.3",
         True),
        ("r.io:5000/a/vllm", "r.io:5000/a/vllm", "", "", False),
        ("x/deep-learning-containers/vllm:0.11.2-gpu-py312", "x/deep-learning-containers/vllm",
         "0.11.2-gpu-py312", "0.11.2", False),
        ("rocm/vllm:rocm6.4.1_vllm_0.9.1_20250715", "rocm/vllm", "rocm6.4.1_vllm_0.9.1_20250715",
         "0.9.1", False),
        ("lmcache/vllm-openai:v0.3.5", "lmcache/vllm-openai", "v0.3.5", "", True),
        ("nginx:1.27.0", "nginx", "1.27.0", "", False),
        ("vllm/vllm-openai:v0.33.0@sha256:ab", "vllm/vllm-openai", "v0.33.0", "0.33.0", True),
    ],
)  # fmt: skip
def test_what_an_image_states(
    text: str, repository: str, tag: str, version: str, *, official: bool
) -> None:
    image = read_image(text, Location(file="f", line=1))
    assert (image.repository, image.tag, image.version) == (repository, tag, version)
    assert image.official is official


@pytest.mark.parametrize(
    ("tag", "known"), [("v0.10.2", True), ("v0.12.0", False), ("v0.26.0", True), ("latest", False)]
)
def test_whether_an_image_s_server_was_looked_up(tag: str, *, known: bool) -> None:
    image = read_image(f"vllm/vllm-openai:{tag}", Location(file="f", line=1))
    assert image.server_is_known is known
