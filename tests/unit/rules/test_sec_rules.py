"""Secrets, ways in and rights, in manifests, Compose files and Helm values."""

from __future__ import annotations

import json

import pytest
from checked_text import COMPOSE, KUBERNETES, MODEL, SERVER, VALUES, checked, found, unchecked

from vllm_advisor.api.checking import check
from vllm_advisor.rules.plain_text import hub_tokens, is_placeholder

KEY = "8c5f2a61d90b"
TOKEN = "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZ01234567"
ENV = "          env: [{name: %s, value: %s}]\n"
KEYED = (
    SERVER + "          env: [{name: VLLM_API_KEY, valueFrom: {secretKeyRef: {name: k, key: k}}}]\n"
)
SERVICE = "---\nkind: Service\nmetadata: {name: vllm%s}\nspec: {selector: {app: vllm}, type: %s}\n"
INGRESS = """\
---
kind: Ingress
metadata: {name: way, annotations: {%s}}
spec:
  rules:
    - http:
        paths:
          - {path: %s, pathType: Prefix, backend: {service: {name: vllm, port: {number: 80}}}}
"""


def _compose(more: str) -> str:
    head = "services:\n  vllm:\n    image: vllm/vllm-openai:v0.33.0\n    command: [Qwen/Qwen3-8B]\n"
    return head + more


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        (SERVER + ENV % ("VLLM_API_KEY", KEY), KUBERNETES, [("SEC001", 13)]),
        (SERVER + f"            - --api-key={KEY}\n", KUBERNETES, []),
        (SERVER.replace('B"]', f'B", "--api-key", "{KEY}"]'), KUBERNETES, [("SEC001", 12)]),
        (KEYED, KUBERNETES, []),
        (_compose(f"    environment: [VLLM_API_KEY={KEY}]\n"), COMPOSE, [("SEC001", 5)]),
        (_compose('    environment: {VLLM_API_KEY: "${KEY}"}\n'), COMPOSE, []),
        (MODEL.replace("  strategy", f"  vllmApiKey: {KEY}\n  strategy"), VALUES, [("SEC001", 2)]),
        (MODEL + f"      hf_token: {TOKEN}\n", VALUES, [("SEC002", 9)]),
        (f"routerSpec:\n  hf_token: {TOKEN}\n", VALUES, [("SEC002", 2)]),
        (SERVER + ENV % ("HF_TOKEN", TOKEN), KUBERNETES, [("SEC002", 13)]),
        (f"# {TOKEN}\n{SERVER}", KUBERNETES, [("SEC002", 1)]),
        (SERVER + ENV % ("HF_TOKEN", "hf_" + "x" * 34), KUBERNETES, []),
    ],
)
def test_secrets_in_plain_text(text: str, kind: str, expected: list[tuple[str, int]]) -> None:
    if "- --api-key" in text:
        text = text.replace(
            '          args: ["Qwen/Qwen3-8B"]\n', "          args:\n            - Qwen/Qwen3-8B\n"
        )
        expected = [("SEC001", 14)]
    assert found(text, kind, "SEC") == expected


@pytest.mark.parametrize("secret", [KEY, TOKEN])
def test_a_secret_is_never_printed(secret: str) -> None:
    texts = [
        (SERVER + ENV % ("VLLM_API_KEY", secret), KUBERNETES),
        (SERVER + ENV % ("HF_TOKEN", secret), KUBERNETES),
        (MODEL + f"      hf_token: {secret}\n", VALUES),
        (f"vllm serve Qwen/Qwen3-8B --api-key {secret} --hf-token {secret}", "shell"),
    ]
    for text, kind in texts:
        assert secret not in json.dumps(checked(text, kind).to_dict()["findings"])


def test_a_token_of_a_command_is_found() -> None:
    report = check("x.sh", kind="shell", text=f"vllm serve Qwen/Qwen3-8B --hf-token {TOKEN}")
    assert "SEC002" in {f.rule for f in report.findings}


@pytest.mark.parametrize(
    "text", ["", "<key>", "$KEY", "changeme", "your-key", "EMPTY", "xxxx", "...", "my-example-key"]
)
def test_placeholders(text: str) -> None:
    assert is_placeholder(text)


@pytest.mark.parametrize("text", [KEY, "token-abc123", "sk-1f2e3d", "yourself2", "s3cr3t"])
def test_no_placeholders(text: str) -> None:
    assert is_placeholder(text) is text.startswith("your")


def test_tokens_have_characters_enough() -> None:
    assert hub_tokens(f"a {TOKEN} b") == [2]
    assert hub_tokens("hf_" + "ab" * 17) == []


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (SERVICE % ("", "LoadBalancer"), [("SEC003", 17)]),
        (SERVICE % ("", "NodePort"), [("SEC003", 17)]),
        (SERVICE % ("", "ClusterIP"), []),
        (SERVICE % (", annotations: {x/scheme: internal}", "LoadBalancer"), []),
        (SERVICE % ("", "ClusterIP") + INGRESS % ("", "/"), [("SEC003", 25)]),
        (SERVICE % ("", "ClusterIP") + INGRESS % ("", "/v1"), []),
        (SERVICE % ("", "ClusterIP") + INGRESS % ("x/auth-url: http://a", "/"), []),
    ],
)
def test_open_paths(more: str, expected: list[tuple[str, int]]) -> None:
    assert found(KEYED + more, KUBERNETES, "SEC") == expected
    without = found(SERVER + more, KUBERNETES, "SEC")
    assert without == [("SEC004", line - 1) for _, line in expected]


def test_a_route_of_every_path() -> None:
    route = """\
---
kind: HTTPRoute
spec:
  rules:
    - matches: [{path: {type: PathPrefix, value: %s}}]
      backendRefs: [{name: vllm, port: 80}]
"""
    service = SERVICE % ("", "ClusterIP")
    assert found(KEYED + service + route % "/", KUBERNETES, "SEC") == [("SEC003", 22)]
    assert found(KEYED + service + route % "/v1", KUBERNETES, "SEC") == []


def test_the_nodes_own_network() -> None:
    text = SERVER.replace("      containers:", "      hostNetwork: true\n      containers:")
    assert found(text, KUBERNETES, "SEC") == [("SEC004", 9)]
    loopback = text.replace('B"]', 'B", "--host", "127.0.0.1"]')
    assert found(loopback, KUBERNETES, "SEC") == []
    policy = "---\nkind: NetworkPolicy\nspec: {podSelector: {matchLabels: {app: vllm}}}\n"
    assert found(text + policy, KUBERNETES, "SEC") == []


@pytest.mark.parametrize(
    ("ports", "exposed"),
    [
        ('["8000:8000"]', True),
        ('["0.0.0.0:8000:8000"]', True),
        ("[{target: 8000, published: 8000}]", True),
        ('["127.0.0.1:8000:8000"]', False),
        ('["${BIND:-127.0.0.1}:8000:8000"]', False),
        ("[{target: 8000, published: 8000, host_ip: 127.0.0.1}]", False),
        ('["8000"]', False),
    ],
)
def test_ports_of_the_host(ports: str, *, exposed: bool) -> None:
    text = _compose(f"    ports: {ports}\n")
    assert found(text, COMPOSE, "SEC") == ([("SEC004", 5)] if exposed else [])


def test_a_key_may_be_in_a_file() -> None:
    text = _compose('    env_file: [.env]\n    ports: ["8000:8000"]\n')
    assert found(text, COMPOSE, "SEC") == []
    assert "SEC004" in unchecked(text, COMPOSE)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("privileged: true", [("SEC010", 5)]),
        ("cap_add: [SYS_ADMIN]", [("SEC010", 5)]),
        ("cap_add: [IPC_LOCK]", []),
        ("privileged: false", []),
    ],
)
def test_rights(line: str, expected: list[tuple[str, int]]) -> None:
    assert found(_compose(f"    {line}\n"), COMPOSE, "SEC") == expected


def _gated(more: str = "") -> str:
    return SERVER.replace("Qwen/Qwen3-8B", "meta-llama/Llama-3.1-8B-Instruct") + more


@pytest.mark.parametrize(
    ("text", "expected", "known"),
    [
        (_gated(), [("SEC011", 12)], True),
        (SERVER, [], True),
        (_gated(ENV % ("HF_HUB_OFFLINE", '"1"')), [], True),
        (
            _gated(
                "          env: [{name: HF_TOKEN, valueFrom: {secretKeyRef: {name: k, key: k}}}]\n"
            ),
            [],
            True,
        ),
        (_gated("          envFrom: [{secretRef: {name: hub}}]\n"), [], False),
        (_gated("          volumeMounts: [{name: w, mountPath: /w}]\n"), [], False),
        (_gated().replace("meta-llama/", "/models/"), [], True),
    ],
)
def test_gated_models(text: str, expected: list[tuple[str, int]], *, known: bool) -> None:
    assert found(text, KUBERNETES, "SEC") == expected
    assert ("SEC011" in unchecked(text, KUBERNETES)) is not known
