"""Writes artifacts into a folder: all or none, and never over other content unasked."""

from __future__ import annotations

import difflib
import os
import shutil
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from vllm_advisor.errors import OutputError
from vllm_advisor.types.plan import Artifact


def drift(artifacts: tuple[Artifact, ...], folder: Path) -> tuple[str, ...]:
    """Names that are missing from ``folder`` or differ from what would be written."""
    return tuple(a.path for a in artifacts if _content(folder / a.path) != a.text)


def differences(artifacts: tuple[Artifact, ...], folder: Path) -> str:
    """A unified diff from what ``folder`` holds to what would be written; empty if nothing."""
    parts: list[str] = []
    for artifact in artifacts:
        before = _content(folder / artifact.path)
        parts += difflib.unified_diff(
            (before or "").splitlines(keepends=True),
            artifact.text.splitlines(keepends=True),
            f"{folder / artifact.path}" if before is not None else "/dev/null",
            artifact.path,
        )
    return "".join(parts)


def as_one_text(artifacts: tuple[Artifact, ...]) -> str:
    """Files for people to read one after the other; a single one as it is, to be piped on."""
    if len(artifacts) == 1:
        return artifacts[0].text
    start = "---\n" if all(a.path.endswith(".yaml") for a in artifacts) else ""
    return "\n".join(f"{start}# {a.path}\n{a.text}" for a in artifacts)


def write_artifacts(
    artifacts: tuple[Artifact, ...],
    folder: Path,
    *,
    overwrite: bool,
    known: Mapping[str, str] = MappingProxyType({}),
) -> tuple[str, ...]:
    """Write every artifact, or none.

    Everything is first written beside the folder; only then is it moved into place.

    Args:
        artifacts: the files.
        folder: where they go; made if it is not there.
        overwrite: replace files of other content.
        known: content that may be replaced all the same, by path.

    Raises:
        OutputError: the folder is a file, cannot be written, or holds differing files.
    """
    try:
        _refuse_differing(artifacts, folder, known, overwrite=overwrite)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as made:
            staged = Path(made) / "new"
            staged.mkdir()
            for artifact in artifacts:
                _write(artifact, staged)
            if folder.exists():
                _move_files(artifacts, staged, folder, backup=Path(made) / "old")
            else:
                staged.rename(folder)
    except OSError as error:
        raise OutputError(
            f"cannot write: {error.strerror or error}",
            where=str(folder),
            fix="nothing was left there; choose another --output-dir or free some space",
        ) from None
    return tuple(a.path for a in artifacts)


def write_text(text: str, path: Path, *, overwrite: bool) -> None:
    """Write one file, or nothing; never over other content unasked.

    Args:
        text: what is written, as UTF-8.
        path: where; its folder has to exist.
        overwrite: replace a file of other content.

    Raises:
        OutputError: it is a folder, cannot be written, or has other content.
    """
    if path.is_dir():
        raise OutputError("this is a folder", where=str(path), fix="name a file")
    try:
        if not overwrite and _content(path) not in (None, text):
            raise OutputError(
                "already there, with other content",
                where=str(path),
                fix="--overwrite, or another --output",
            )
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as made:
            _write(Artifact(path="new", text=text), Path(made))
            (Path(made) / "new").replace(path)
    except OSError as error:
        raise OutputError(
            f"cannot write: {error.strerror or error}",
            where=str(path),
            fix="nothing was left there; name a file in a folder that exists and can be written",
        ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """A file that is there, with its text now and its text to be."""

    path: str
    before: str
    after: str


def rewrite_files(files: Collection[Rewrite]) -> None:
    """Replace the text of files, or of none of them; modes stay, links are followed.

    Args:
        files: UTF-8 texts; line ends are written as they stand in ``after``.

    Raises:
        OutputError: a file has another text than ``before``, or cannot be written.
    """
    if not files:
        return
    places = [Path(os.path.realpath(file.path)) for file in files]
    folder = Path(os.path.commonpath([place.parent for place in places]))
    try:
        for file, place in zip(files, places, strict=True):
            if place.read_bytes() != file.before.encode():
                raise OutputError(
                    "the file has changed since it was read", where=file.path, fix="run it again"
                )
        with tempfile.TemporaryDirectory(dir=folder, prefix=".vllm-advisor-") as made:
            staged = Path(made) / "new"
            artifacts = []
            for file, place in zip(files, places, strict=True):
                artifact = Artifact(path=str(place.relative_to(folder)), text=file.after)
                _write(artifact, staged)
                shutil.copymode(place, staged / artifact.path)
                artifacts.append(artifact)
            _move_files(tuple(artifacts), staged, folder, backup=Path(made) / "old")
    except OSError as error:
        raise OutputError(
            f"cannot write: {error.strerror or error}",
            where=str(error.filename or folder),
            fix="nothing was changed; look at the permissions of the file and its folder",
        ) from None


def _refuse_differing(
    artifacts: tuple[Artifact, ...], folder: Path, known: Mapping[str, str], *, overwrite: bool
) -> None:
    if folder.exists() and not folder.is_dir():
        raise OutputError("this is a file", where=str(folder), fix="name a folder")
    if overwrite:
        return
    differing = [
        a.path
        for a in artifacts
        if _content(folder / a.path) not in (None, a.text, known.get(a.path))
    ]
    if differing:
        raise OutputError(
            f"{', '.join(differing)} already there, with other content",
            where=str(folder),
            fix="--overwrite, or another --output-dir",
        )


def _content(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return None


def _write(artifact: Artifact, folder: Path) -> None:
    path = folder / artifact.path
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        stream.write(artifact.text)
        stream.flush()
        os.fsync(stream.fileno())
    if artifact.executable:
        path.chmod(0o755)


def _move_files(
    artifacts: tuple[Artifact, ...], staged: Path, folder: Path, *, backup: Path
) -> None:
    """Move file by file, and put everything back if one move fails."""
    moved: list[Path] = []
    try:
        for artifact in artifacts:
            target, kept = folder / artifact.path, backup / artifact.path
            kept.parent.mkdir(parents=True, exist_ok=True)
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.exists():
                shutil.copy2(target, kept)
            (staged / artifact.path).replace(target)
            moved.append(Path(artifact.path))
    except OSError:
        for path in moved:
            if (backup / path).exists():
                (backup / path).replace(folder / path)
            else:
                (folder / path).unlink()
        raise
