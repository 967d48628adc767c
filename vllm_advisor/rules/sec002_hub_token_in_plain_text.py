"""A token of the Hugging Face Hub stands in the source as plain text.

## What it checks
Every text of the source, comments included, for tokens (`hf_` and 30 or more characters), and
`hf_token` as a text in production-stack's values: of a model, and of the router, whose chart can
only take it as a plain variable. Placeholders pass. The token itself is never printed.

## Why it matters
Whoever reads the file or its history can act on the Hub as the token's owner.

## Bad
```yaml
servingEngineSpec:
  modelSpec:
    - name: chat
      repository: vllm/vllm-openai
      tag: v0.33.0
      modelURL: Qwen/Qwen3-8B
      hf_token: 6f1b2c3d4e5a
```

## Good
```yaml
servingEngineSpec:
  modelSpec:
    - name: chat
      repository: vllm/vllm-openai
      tag: v0.33.0
      modelURL: Qwen/Qwen3-8B
      hf_token: {secretName: hf-token, secretKey: HF_TOKEN}
```

## Fix
Revoke the token, put a new one into a Secret, and name the Secret.

## References
- https://huggingface.co/docs/hub/security-tokens
- https://kubernetes.io/docs/concepts/configuration/secret/
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.plain_text import hub_tokens, is_placeholder
from vllm_advisor.rules.protocol import Fault, SourceSubject, Subject, source_rule
from vllm_advisor.types.decision import Location
from vllm_advisor.types.finding import Severity

_VARIABLES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")


@source_rule(id="SEC002", name="hub-token-in-plain-text", severity=Severity.ERROR)
def check(subject: SourceSubject) -> Iterator[Fault]:
    """Search the texts of documents, and what commands are given."""
    places: dict[tuple[str, int], tuple[Location, str]] = {}
    found = [*_settings(subject), *(each for one in subject.subjects for each in _commands(one))]
    for place, name in (*found, *_documents(subject)):
        places.setdefault((place.file, place.line), (place, name))
    for place, name in places.values():
        yield Fault(
            message=f"{name} holds a token of the Hugging Face Hub as plain text",
            location=place,
            fix="revoke the token, put a new one into a Secret, and take HF_TOKEN from it "
            "(valueFrom.secretKeyRef; hf_token: {secretName: NAME, secretKey: HF_TOKEN} in "
            "production-stack's values)",
            evidence=(("setting", name),),
        )


def _settings(subject: SourceSubject) -> Iterator[tuple[Location, str]]:
    for one in subject.deployed.of_kind("modelSpec", "routerSpec"):
        token = one.view.at("hf_token")
        if token.string() and not is_placeholder(token.string()):
            yield token.location, f"{one.kind}.hf_token"


def _commands(subject: Subject) -> Iterator[tuple[Location, str]]:
    command = subject.command
    token = subject.args.get("hf_token")
    if isinstance(token, str) and hub_tokens(token):
        yield subject.place("hf_token"), "--hf-token"
    for name in _VARIABLES:
        if hub_tokens(command.env.get(name, "")):
            yield command.env_locations[name], name


def _documents(subject: SourceSubject) -> Iterator[tuple[Location, str]]:
    documents = {id(one.view.document.text): one.view.document for one in subject.deployed.objects}
    for document in documents.values():
        for offset in hub_tokens(document.text):
            before = document.text[:offset]
            column = offset - before.rfind("\n")
            line = before.count("\n") + 1
            yield Location(file=document.file, line=line, column=column), "this line"
