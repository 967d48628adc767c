"""Which rules of check run on which files, and what makes it fail: options and a file of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from os.path import relpath
from pathlib import Path, PurePath

from vllm_advisor.errors import InputError
from vllm_advisor.rules.registry import all_rules
from vllm_advisor.rules.selection import select_rules

CONFIG_NAME = ".vllm-advisor.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOptions:
    """What :func:`check_options` made of the command line and a file.

    ``rules`` are ids. ``per_path`` holds patterns of paths below ``folder`` and the ids of the
    rules that do not run there.
    """

    rules: frozenset[str] = field(default_factory=lambda: frozenset(r.id for r in all_rules()))
    fail_on: str = "error"
    folder: Path | None = None
    per_path: tuple[tuple[str, frozenset[str]], ...] = ()

    def rules_for(self, file: str) -> frozenset[str]:
        """Ids of the rules that run on a file."""
        if not self.per_path or self.folder is None:
            return self.rules
        path = PurePath(relpath(file, self.folder)).as_posix()
        left_out = [ids for pattern, ids in self.per_path if fnmatchcase(path, pattern)]
        return self.rules.difference(*left_out)


def find_config(start: str | Path) -> Path | None:
    """The nearest ``.vllm-advisor.yaml`` in the folder of a file, or in one above it."""
    path = Path(start).absolute()
    folders = (path, *path.parents) if path.is_dir() else path.parents
    return next((f / CONFIG_NAME for f in folders if (f / CONFIG_NAME).is_file()), None)


def check_options(
    *,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    fail_on: str | None = None,
    config: str | Path | None = None,
) -> CheckOptions:
    """Options of a check; what is given wins over what the file says of the same.

    Args:
        select: ids, names or families of the rules to run, also several in one word with commas;
            all unless given.
        ignore: those that do not run, in the same way.
        fail_on: ``error``, ``warning``, ``info`` or ``never``.
        config: a ``.vllm-advisor.yaml``.

    Raises:
        InputError: a word means no rule, or the file is wrong.
    """
    chosen, left_out = _named(select, "--select"), _named(ignore, "--ignore")
    if config is None:
        return CheckOptions(rules=_rules(chosen, left_out), fail_on=fail_on or "error")
    from vllm_advisor.knowledge.check_file import read_check_file  # noqa: PLC0415 - pydantic

    keys, marked = read_check_file(Path(config))
    chosen = chosen or [
        (name, marked.where(("select", i))) for i, name in enumerate(keys.select or ())
    ]
    left_out = left_out or [
        (name, marked.where(("ignore", i))) for i, name in enumerate(keys.ignore or ())
    ]
    per_path = tuple(
        (
            pattern,
            select_rules(
                (name, marked.where(("per_path_ignores", pattern, i)))
                for i, name in enumerate(names)
            ),
        )
        for pattern, names in keys.per_path_ignores.items()
    )
    return CheckOptions(
        rules=_rules(chosen, left_out),
        fail_on=fail_on or keys.fail_on or "error",
        folder=Path(config).parent,
        per_path=per_path,
    )


def _named(words: Iterable[str], option: str) -> list[tuple[str, str]]:
    """The names in the words of an option, each with the option as its place."""
    found = []
    for word in words:
        names = [name.strip() for name in word.split(",") if name.strip()]
        if not names:
            raise InputError(
                f"{option} names no rule: an empty variable of the shell?",
                where=option,
                fix="see `vllm-advisor rules`, or leave it out",
            )
        found += [(name, option) for name in names]
    return found


def _rules(chosen: list[tuple[str, str]], left_out: list[tuple[str, str]]) -> frozenset[str]:
    selected = select_rules(chosen) if chosen else frozenset(rule.id for rule in all_rules())
    return selected - select_rules(left_out)
