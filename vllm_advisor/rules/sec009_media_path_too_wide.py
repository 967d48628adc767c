"""Requests may read files far beyond the media that are meant for them.

## What it checks
`--allowed-local-media-path` with the root of the file system or a folder of the system.

## Why it matters
A request may name any file below the path as an image or a video, and errors tell which files
exist.

## Bad
```bash
vllm serve Qwen/Qwen3-VL-8B-Instruct --allowed-local-media-path /
```

## Good
```bash
vllm serve Qwen/Qwen3-VL-8B-Instruct --allowed-local-media-path /srv/media
```

## Fix
Name the one folder that holds the media, mounted read-only.

## References
- vllm:0.33.0:vllm/config/model.py#ModelConfig.allowed_local_media_path
- https://docs.vllm.ai/en/latest/usage/security/
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity

_TOO_WIDE = ("/", "/etc", "/home", "/proc", "/root", "/run", "/sys", "/usr", "/var", "/var/run")


@rule(
    id="SEC009",
    name="media-path-too-wide",
    severity=Severity.WARNING,
    flags=("allowed_local_media_path",),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Compare the folder with those of the system."""
    path = subject.args.get("allowed_local_media_path")
    if not isinstance(path, str) or not path:
        return
    if posixpath.normpath(path).replace("//", "/") in _TOO_WIDE:
        yield Fault(
            message=f"--allowed-local-media-path {path} lets requests read the system's own files",
            location=subject.place("allowed_local_media_path"),
            fix="--allowed-local-media-path with the one folder that holds the media",
        )
