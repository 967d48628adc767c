"""Files, folders, standard input and commands -> what they deploy."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vllm_advisor.errors import InputError
from vllm_advisor.parse.deployed import Deployed
from vllm_advisor.parse.images import EngineOf
from vllm_advisor.parse.kinds import checked_kind, is_dockerfile, kind_of
from vllm_advisor.parse.kubernetes.instances import KIND as KUBERNETES
from vllm_advisor.parse.kubernetes.instances import read_kubernetes
from vllm_advisor.parse.remarks import Note
from vllm_advisor.parse.shell import Command, Token
from vllm_advisor.parse.shell_servers import servers_in
from vllm_advisor.parse.shell_source import shell_instance
from vllm_advisor.parse.sources import read_source
from vllm_advisor.parse.yaml_tree import YamlDocument, load_yaml
from vllm_advisor.types.decision import Location

COMMAND_LINE = "command line"  # the file of a command given as words
TEXT = "text"  # the file of a text given itself
MAX_FILES = 2_000  # of a folder
MAX_BYTES = 2_000_000  # of one file in it
_FIX = "name a file or a folder, or write the command after --"
MAX_WALKED = 100_000  # files of any kind that are passed on the way
_TEMPLATE = re.compile(
    r"^[ \t]*\{\{-?\s|\{\{-? *(?:\.Values|include|tpl|range|if|with)\b", re.MULTILINE
)
_YAML = (".yaml", ".yml")
_READ = (*_YAML, ".sh", ".bash", ".service")


@dataclass(slots=True)
class Sources:
    """What was read, and what was passed over.

    ``texts`` are those of all files that were read, as they are written, by their name in places.
    """

    deployed: list[Deployed] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)


def read_sources(
    source: str | Path | Sequence[str | Path],
    engine_of: EngineOf,
    *,
    text: str | None,
    kind: str | None,
) -> Sources:
    """Everything that is named.

    Args:
        source: a path, several, the words of a command, or a text if ``kind`` is given.
        engine_of: facts of the version that an image states.
        text: the text, where ``source`` is only its name; of ``-`` where there are several.
        kind: what the text or the files are; None to find it out.

    Raises:
        InputError: nothing can be read, or nothing that was read starts vLLM.
    """
    kind = None if kind is None else checked_kind(kind)
    found = Sources()
    if not isinstance(source, str | Path):
        words = [str(word) for word in source]
        command = _command(words, engine_of)
        if command is not None:
            found.deployed.append(command)
            found.texts[COMMAND_LINE] = " ".join(words)
            return found
    elif text is None and kind is not None and not _exists(source):
        text, source = str(source), TEXT
    for one in (source,) if isinstance(source, str | Path) else source:
        if text is not None and (isinstance(source, str | Path) or str(one) == "-"):
            found.texts[str(one)] = text
            found.deployed.append(read_source(text, str(one), engine_of, kind=kind))
        elif Path(one).is_dir():
            _read_folder(Path(one), engine_of, kind, found)
        else:
            found.texts[str(one)] = _text(Path(one), str(one))
            found.deployed.append(
                read_source(found.texts[str(one)], str(one), engine_of, kind=kind)
            )
    _tell_empty(found)
    return found


def _command(words: list[str], engine_of: EngineOf) -> Deployed | None:
    """Words that are a command rather than names of files."""
    column, tokens = 1, []
    for word in words:
        tokens.append(Token(word, Location(file=COMMAND_LINE, line=1, column=column)))
        column += len(word) + 1
    servers = servers_in(Command(words=tuple(tokens), env={}), engine_of) if tokens else []
    if not servers:
        return None
    instances = tuple(shell_instance(server, "serve") for server in servers)
    return Deployed(kind="serve", file=COMMAND_LINE, instances=instances)


def _exists(source: str | Path) -> bool:
    try:
        return Path(source).exists()
    except (OSError, ValueError):  # no name that a file system could have
        return False


def _text(path: Path, name: str) -> str:
    try:
        return path.read_bytes().decode("utf-8")  # line ends stay
    except (OSError, ValueError) as error:
        says = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read: {says}", where=name, fix=_FIX) from None


def _read_folder(folder: Path, engine_of: EngineOf, kind: str | None, found: Sources) -> None:
    """Every file that starts vLLM; manifests of one folder belong together."""
    manifests: dict[Path, list[YamlDocument]] = {}
    skipped = 0
    for path in _files(folder, found):
        name, text = str(path), _text_of_any(path)
        own = None if text is None else kind or kind_of(name, text)
        if text is None or own is None:
            skipped += 1
        elif path.suffix in _YAML and _TEMPLATE.search(text) and own == KUBERNETES:
            says = "a template of Helm: render it first (helm template) and check what comes out"
            found.notes.append(Note(says, Location(file=name, line=1)))
        elif own == KUBERNETES:
            found.texts[name] = text
            manifests.setdefault(path.parent, []).extend(load_yaml(text, name))
        else:
            deployed = read_source(text, name, engine_of, kind=own)
            if deployed.instances or deployed.objects:
                found.deployed.append(deployed)
                found.texts[name] = text
            else:
                skipped += 1
    for parent, documents in manifests.items():
        found.deployed.append(read_kubernetes(documents, str(parent), engine_of))
    if skipped:
        says = f"{skipped} scripts and YAML files start no vLLM, or are too large: passed over"
        found.notes.append(Note(says, Location(file=str(folder), line=1)))


def _files(folder: Path, found: Sources) -> Iterator[Path]:
    """Files by whose names they may start vLLM, below a folder too, sorted; no hidden ones."""
    count = walked = 0
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(parent, name)
            walked += 1
            readable = path.suffix in _READ or is_dockerfile(name)
            if name.startswith(".") or not readable or not path.is_file():
                continue
            count += 1
            if count > MAX_FILES or walked > MAX_WALKED:
                says = f"{walked:,} files were passed: those from {path} on were not read"
                found.notes.append(Note(says, Location(file=str(folder), line=1)))
                return
            yield path


def _text_of_any(path: Path) -> str | None:
    """A file's text; None for one that is too large, binary or not to be read."""
    try:
        if path.stat().st_size > MAX_BYTES:
            return None
        raw = path.read_bytes()
        return None if b"\0" in raw[:8192] else raw.decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _tell_empty(found: Sources) -> None:
    """Say which sources have no server.

    Raises:
        InputError: there is nothing to check at all.
    """
    if not any(one.instances or one.objects for one in found.deployed):
        where = ", ".join(one.file for one in found.deployed)
        fix = "the text should have a line such as: vllm serve MODEL --max-model-len 32K"
        raise InputError("no vllm command found", where=where, fix=fix)
    for one in found.deployed:
        found.notes += one.notes
        if not one.instances:
            found.notes.append(Note("starts no vLLM server", Location(file=one.file, line=1)))
