"""``.vllm-advisor.yaml``: which rules of check count in a repository."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from vllm_advisor.errors import InputError
from vllm_advisor.knowledge.workload_problems import read_keys
from vllm_advisor.knowledge.workload_values import Keys, Line
from vllm_advisor.knowledge.yaml_marks import MarkedYaml, load_marked

_Rules = Annotated[list[Line], Field(min_length=1)]


class CheckKeys(Keys):
    """Rules are named by id, name or family: KV001, context-exceeds-kv-cache, KV."""

    model_config = ConfigDict(title="vllm-advisor check")

    select: _Rules | None = Field(None, description="Rules that run; all unless given.")
    ignore: _Rules | None = Field(None, description="Rules that do not run.")
    fail_on: Literal["error", "warning", "info", "never"] | None = Field(
        None, description="Least severity that makes the exit code 1; error unless given."
    )
    per_path_ignores: dict[Line, _Rules] = Field(
        {},
        description="Rules that do not run on some files, by a pattern of the path from the folder "
        "of this file; * matches slashes too.",
    )


def read_check_file(path: Path) -> tuple[CheckKeys, MarkedYaml]:
    """The keys of a file, and where each of them stands.

    Raises:
        InputError: the file cannot be read, or something in it is wrong.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"cannot read: {reason}", where=str(path), fix="name a file with select or ignore"
        ) from None
    marked = load_marked(text, str(path))
    return read_keys(marked, CheckKeys), marked
