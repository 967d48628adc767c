"""Secrets that stand in a source as plain text, and what to write in their place."""

from __future__ import annotations

import re

from vllm_advisor.rules.protocol import Subject

_PLACEHOLDER = re.compile(
    r"\s*|.*[$<>{}*].*|(?:.*[-_ ])?(?:your|change[-_]?me|replace|example|placeholder|redacted"
    r"|dummy)(?:[-_ ].*|me)?|your.*|x+|empty|none|null|\.*|.*\.\.\..*|.*xxx.*",
    re.IGNORECASE | re.DOTALL,
)
_HUB_TOKEN = re.compile(r"\bhf_[A-Za-z0-9]{30,}\b")
_FEWEST_CHARACTERS = 10  # different ones in a token; hf_xxxx... and hf_1234123... have fewer


def is_placeholder(text: str) -> bool:
    """Whether a value plainly stands for another: ``<key>``, ``$KEY``, ``changeme``, ``xxx``."""
    return _PLACEHOLDER.fullmatch(text) is not None


def hub_tokens(text: str) -> list[int]:
    """Where tokens of the Hugging Face Hub begin in a text: offsets."""
    return [
        match.start()
        for match in _HUB_TOKEN.finditer(text)
        if len(set(match[0][3:])) >= _FEWEST_CHARACTERS
    ]


def secret_reference(subject: Subject, variable: str) -> str:
    """How the source should name a secret that it must not hold."""
    kind = subject.instance.kind if subject.instance else "shell"
    if kind == "helm-production-stack":
        key = {"VLLM_API_KEY": "servingEngineSpec.vllmApiKey", "HF_TOKEN": "hf_token"}[variable]
        return f"{key}: {{secretName: NAME, secretKey: {variable}}}"
    if kind == "kubernetes":
        reference = f"{{secretKeyRef: {{name: NAME, key: {variable}}}}}"
        return f"env: [{{name: {variable}, valueFrom: {reference}}}]"
    if kind == "compose":
        return f'{variable}: "${{{variable}:?}}" with the value in .env'
    return f"take {variable} from the environment or from a file that only the server may read"
