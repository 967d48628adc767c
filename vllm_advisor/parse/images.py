"""Container images: what vLLM version a tag states, and which server an image starts by itself."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from packaging.version import InvalidVersion, Version

from vllm_advisor.parse.parsed_command import API_SERVER, VLLM_SERVE
from vllm_advisor.types.decision import Location
from vllm_advisor.types.engine import EngineFacts

# vllm/vllm-openai, a mirror of it, and its builds for other devices.
_OFFICIAL = re.compile(r"(?:.*/)?vllm-openai(?:-[\w.-]+)?")
_SERVER = re.compile(r"(?:.*/)?vllm(?:-(?!router|stack)[\w.-]+)?")
_NOT_OF_VLLM = ("lmcache/",)  # tags count their own project's versions
_VERSION = re.compile(r"v?(\d+(?:\.\d+){1,3}(?:\.?(?:rc|post|dev)\d+)?)(?:[-_+].*)?")
_VERSION_INSIDE = re.compile(r"(?:^|[-_])vllm[-_]v?(\d+\.\d+\.\d+)")
# The image of 0.10 starts the module, that of 0.26 `vllm serve` (NVIDIA-AI-IOT/jetson-ai-lab#420);
# when it changed in between was not found out.
SERVE_FROM, _SERVE_SURELY_FROM = Version("0.11"), Version("0.26")


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An image as a container names it; ``tag`` and ``digest`` are empty where they are not."""

    text: str
    location: Location
    repository: str
    tag: str = ""
    digest: str = ""

    @property
    def version(self) -> str:
        """The vLLM version that the tag states; empty for ``latest``, a digest, or other images."""
        if any(part in f"{self.repository}/" for part in _NOT_OF_VLLM):
            return ""
        match = _VERSION.fullmatch(self.tag) if self.serves else None
        match = match or _VERSION_INSIDE.search(self.tag)
        try:
            return str(Version(match[1])) if match else ""
        except InvalidVersion:
            return ""

    @property
    def serves(self) -> bool:
        """Whether the image is one of vLLM by its name."""
        return _SERVER.fullmatch(self.repository) is not None

    @property
    def official(self) -> bool:
        """Whether it is vLLM's own image, or named like it: one that starts a server by itself."""
        return _OFFICIAL.fullmatch(self.repository) is not None

    @property
    def server(self) -> str:
        """The server that gets the arguments of a container without a command."""
        version = self.version
        old = bool(version) and Version(version) < SERVE_FROM
        return API_SERVER if self.official and old else VLLM_SERVE

    @property
    def server_is_known(self) -> bool:
        """Whether :attr:`server` was looked up rather than assumed."""
        if not self.official or not self.version:
            return False
        version = Version(self.version)
        return version < SERVE_FROM or version >= _SERVE_SURELY_FROM


EngineOf: TypeAlias = Callable[[Image | None], EngineFacts]  # facts of the version an image states


def read_image(text: str, location: Location) -> Image:
    """The parts of ``[REGISTRY/]NAME[:TAG][@DIGEST]``."""
    name, _, digest = text.strip().partition("@")
    repository, colon, tag = name.rpartition(":")
    if not colon or "/" in tag:  # the port of a registry
        repository, tag = name, ""
    return Image(text=text, location=location, repository=repository, tag=tag, digest=digest)
