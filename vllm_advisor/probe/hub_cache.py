"""The Hugging Face Hub's cache on this machine, its token, and whether it may be asked at all.

Names and defaults are those of huggingface_hub
(docs:https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from vllm_advisor.errors import UnknownFactError
from vllm_advisor.probe.local_model import CONFIG, INDEX

_TRUE = frozenset({"1", "ON", "YES", "TRUE"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One commit of a model in the cache."""

    folder: Path
    commit: str

    @property
    def has_weights(self) -> bool:
        """The size of the weights can be read here, so the whole model was downloaded once."""
        files = (self.folder / INDEX, *self.folder.glob("*.safetensors"))
        return any(file.is_file() for file in files)  # links of a cleaned cache lead nowhere


def _is_set(variable: str) -> bool:
    return os.environ.get(variable, "").upper() in _TRUE


def is_offline() -> bool:
    """Whether the user forbade the network."""
    return _is_set("HF_HUB_OFFLINE") or _is_set("TRANSFORMERS_OFFLINE")


def _path(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError:  # a container user without a home
        return Path(text)


def _hf_home() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return _path(os.environ.get("HF_HOME") or f"{cache}/huggingface")


def cache_folder() -> Path:
    """Folder of the Hub's cache."""
    folder = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE")
    return _path(folder) if folder else _hf_home() / "hub"


def find_snapshot(model_id: str, revision: str) -> Snapshot | None:
    """The cached snapshot a revision (branch, tag or commit) points to, if it has a config.json.

    Layout: ``models--org--name/refs/<revision>`` holds the commit, ``snapshots/<commit>/`` the
    files.
    """
    repository = cache_folder() / f"models--{model_id.replace('/', '--')}"
    try:
        commit = (repository / "refs" / revision).read_text("utf-8").strip()
    except (OSError, ValueError):
        commit = revision
    folder = repository / "snapshots" / commit
    try:
        found = commit.isalnum() and (folder / CONFIG).is_file()
    except OSError:
        return None
    return Snapshot(folder=folder, commit=commit) if found else None


def token() -> str | None:
    """The user's Hub token from HF_TOKEN or from the file ``hf auth login`` writes.

    Raises:
        UnknownFactError: HF_TOKEN holds something no header can carry.
    """
    if _is_set("HF_HUB_DISABLE_IMPLICIT_TOKEN"):
        return None
    text = (os.environ.get("HF_TOKEN") or os.environ.get("HUGGING_FACE_HUB_TOKEN") or "").strip()
    where = "HF_TOKEN"
    if not text:
        named = os.environ.get("HF_TOKEN_PATH")
        path = _path(named) if named else _hf_home() / "token"
        where = str(path)
        try:
            text = path.read_text("utf-8").strip()
        except (OSError, ValueError):
            return None
    if not all("!" <= character <= "~" for character in text):
        raise UnknownFactError(
            "the Hub token holds blanks or characters that no token has",  # never show it
            where=where,
            fix="set HF_TOKEN to the token alone",
        )
    return text or None
