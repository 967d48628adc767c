"""Everything that is asked of a folder of Kubernetes manifests, in one question."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import yaml

from judges.kubectl import kustomize_problems, yaml_problems
from judges.schemas import schema_problems
from vllm_advisor.parse.kubernetes_semantics import manifest_problems


def folder_problems(folder: Path, *, external: Collection[str] = ()) -> list[str]:
    """What kubectl, the schemas and the semantic layer say of all ``*.yaml`` in a folder.

    Its kustomization.yaml, if there is one, has to build exactly these objects. ``external``:
    objects that exist already, as ``Kind/name``.
    """
    found: list[str] = []
    objects = []
    for path in sorted(folder.glob("*.yaml")):
        if path.name != "kustomization.yaml":
            text = path.read_text(encoding="utf-8")
            found += [f"{path.name}{problem}" for problem in yaml_problems(text)]
            objects += [one for one in yaml.safe_load_all(text) if one is not None]
    found += schema_problems(objects)
    found += [
        f"{one.object}: {one.path}: {one.message} ({one.code})"
        for one in manifest_problems(objects, external=external)
    ]
    if (folder / "kustomization.yaml").exists():
        found += kustomize_problems(folder)
    return found
