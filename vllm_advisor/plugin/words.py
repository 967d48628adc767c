"""The command of this process as words that ``check`` reads, without its secrets."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import PurePath

# Variables that Kubernetes makes of the names of Services, as long as vLLM does not read them.
_OF_A_SERVICE = re.compile(r"VLLM_\w+_(?:SERVICE_(?:HOST|PORT\w*)|PORT(?:_\d+_(?:TCP|UDP)\w*)?)")
_SECRET_FLAGS = {"--api-key": "$VLLM_API_KEY", "--hf-token": "$HF_TOKEN"}
_SECRET = re.compile(r"VLLM_\w*(?:KEY|TOKEN|SECRET|PASSWORD)")
_OWN = "VLLM_ADVISOR"
_MODULE = "vllm.entrypoints.openai.api_server"


def serve_command(argv: Sequence[str] | None = None) -> list[str] | None:
    """``vllm serve ...`` as this process was started; None if it serves nothing, or only helps.

    Args:
        argv: ``sys.argv`` unless given.
    """
    argv = sys.argv if argv is None else argv
    if any(word in ("-h", "--help") or word.startswith("--help=") for word in argv):
        return None
    if len(argv) > 1 and argv[1] == "serve":
        return ["vllm", "serve", *_masked(argv[2:])]
    if argv and PurePath(argv[0]).name == "api_server.py":
        return ["python3", "-m", _MODULE, *_masked(argv[1:])]
    return None


def _masked(words: Sequence[str]) -> list[str]:
    """The words, with a variable's name in the place of every secret."""
    found: list[str] = []
    secret = ""
    for word in words:
        name, equals, _ = word.partition("=")
        flag = name.replace("_", "-")
        if secret and not word.startswith("--"):
            found.append(secret)
            continue
        secret = ""
        if flag not in _SECRET_FLAGS:
            found.append(word)
        elif equals:
            found.append(f"{name}={_SECRET_FLAGS[flag]}")
        else:
            found.append(word)
            secret = _SECRET_FLAGS[flag]
    return found


def environment_words(environ: Mapping[str, str] | None = None) -> list[str]:
    """``NAME=value`` of what vLLM reads from the environment; a secret is its variable's name."""
    environ = os.environ if environ is None else environ
    words = []
    for name, value in sorted(environ.items()):
        if not name.startswith("VLLM_") or name.startswith(_OWN) or _OF_A_SERVICE.fullmatch(name):
            continue
        words.append(f"{name}=${name}" if _SECRET.fullmatch(name) else f"{name}={value}")
    return words


def served_names(argv: Sequence[str] | None = None) -> tuple[str, ...]:
    """Names of ``--served-model-name``; none where the command does not give them."""
    argv = sys.argv if argv is None else argv
    found: list[str] = []
    taking = False
    for word in argv:
        name, equals, value = word.partition("=")
        if name.replace("_", "-") == "--served-model-name":
            found, taking = ([value] if equals else []), not equals
        elif word.startswith("--"):
            taking = False
        elif taking:
            found.append(word)
    return tuple(found)


def model_word(words: Sequence[str]) -> str:
    """The model that a command names; empty where it does not."""
    for before, word in pairwise(words):
        if before == "--model" or (before == "serve" and not word.startswith("-")):
            return word
        if word.startswith("--model="):
            return word.partition("=")[2]
    return ""
