"""Reads one profile file: YAML through libyaml where it was built in, checked by a pydantic model.

Shared by everything bundled under ``profiles/``. A file that breaks its schema is a fault of the
installation, still said as an :class:`~vllm_advisor.errors.InputError` with its path.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from vllm_advisor.errors import InputError

_FIX = "correct the file, or install vllm-advisor again if you have not changed it"
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times faster, where it exists
ModelT = TypeVar("ModelT", bound=BaseModel)


def profile_names(folder: Path) -> tuple[str, ...]:
    """File names without ``.yaml``, sorted: the ids of all profiles of one kind."""
    return tuple(sorted(path.stem for path in folder.glob("*.yaml")))


def read_profile(path: Path, schema: type[ModelT], *, before: str | None = None) -> ModelT:
    """Read and check one profile.

    Args:
        path: an existing file.
        schema: the pydantic model of this kind of profile, or of its first keys.
        before: a top-level key; what stands from there on is not even parsed.

    Raises:
        InputError: the file cannot be read, is no YAML, or breaks the schema.
    """
    try:
        text = path.read_text(encoding="utf-8")
        if before is not None:
            text = text.split(f"\n{before}:", 1)[0]
        return schema.model_validate(yaml.load(text, Loader=_LOADER))  # noqa: S506
    except (OSError, UnicodeDecodeError) as error:
        what = f"the profile cannot be read: {error}"
        raise InputError(what, where=str(path), fix=_FIX) from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        what = f"the profile is no YAML: {getattr(error, 'problem', error)}"
        raise InputError(what, where=place, fix=_FIX) from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "the whole file"
        what = f"the profile is wrong at {key}: {first['msg']}"
        raise InputError(what, where=str(path), fix=_FIX) from error
