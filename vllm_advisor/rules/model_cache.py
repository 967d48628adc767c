"""Where a server keeps the weights it downloads: no rule, but what several rules ask."""

from __future__ import annotations

from pathlib import PurePosixPath

from vllm_advisor.parse.container import Container, Mount
from vllm_advisor.parse.kubernetes.volumes import SHM
from vllm_advisor.rules.protocol import Subject

# Kinds of volumes that hold no weights.
_SMALL = ("secret", "configMap", "downwardAPI", "projected")


def on_the_hub(subject: Subject) -> bool:
    """Whether the model is named by its id on the Hub, so that vLLM downloads it."""
    name = subject.command.model
    return "/" in name and "://" not in name and not name.startswith(("/", ".", "~", "$"))


def cache_dir(subject: Subject, container: Container) -> str | None:
    """The folder of the downloaded weights; None where a variable that is not known decides."""
    given = subject.args.get("download_dir")
    if isinstance(given, str):
        return given
    for name, below in (
        ("HF_HUB_CACHE", ""),
        ("HUGGINGFACE_HUB_CACHE", ""),
        ("HF_HOME", "hub"),
        ("XDG_CACHE_HOME", "huggingface/hub"),
        ("HOME", ".cache/huggingface/hub"),
    ):
        variable = container.variable(name)
        if variable is not None:
            return None if variable.value is None else str(PurePosixPath(variable.value, below))
    return f"{_home(subject, container)}/.cache/huggingface/hub"


def _home(subject: Subject, container: Container) -> str:
    """The home of the user that the container runs as; of one the image does not know it is /."""
    user, non_root = container.security.run_as_user, container.security.run_as_non_root
    if user is not None and user.value != 0:
        return "/home/vllm" if user.value == subject.engine.image_uid else ""
    return "" if user is None and non_root is not None and non_root.value else "/root"


def covering(subject: Subject, container: Container) -> Mount | None:
    """The volume on which the weights come to lie; the nearest one above their folder."""
    folder = cache_dir(subject, container)
    if folder is None:
        return None
    above = [m for m in container.mounts if m.path and PurePosixPath(folder).is_relative_to(m.path)]
    return max(above, key=lambda mount: len(mount.path), default=None)


def data_mounts(container: Container) -> list[Mount]:
    """Volumes that could hold weights."""
    return [
        mount
        for mount in container.mounts
        if mount.kind not in _SMALL
        and not mount.read_only
        and mount.path.rstrip("/") != SHM
        and mount.medium != "Memory"
    ]
