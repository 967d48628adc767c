"""kubectl, Helm and shellcheck: the real ones are asked, and their refusals reach the reader."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from judges.bundles import BUNDLE, CUSTOM, objects
from judges.helm import values_problems
from judges.kubectl import kustomize, kustomize_problems, read_by_kubectl, yaml_problems
from judges.shell import script_problems

MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {key: %s}\n"


@pytest.mark.parametrize("path", [BUNDLE, CUSTOM], ids=["bundle", "custom"])
def test_both_parsers_read_the_same(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert yaml_problems(text) == []
    assert read_by_kubectl(text) == objects(path)


@pytest.mark.parametrize("value", ["12345e67", "1e3", "0o17", "2026-01-31"])
def test_values_that_go_reads_otherwise(value: str) -> None:
    (problem,) = yaml_problems(MAP % value)
    assert problem.startswith("[0].data.key: ")
    (problem,) = values_problems(f"key: {value}")
    assert problem.startswith(".key: ")
    assert yaml_problems(MAP % f'"{value}"') == values_problems(f'key: "{value}"') == []


def test_what_go_does_not_read_at_all() -> None:
    for problems in (yaml_problems(MAP % "[a"), values_problems("key: [a")):
        assert len(problems) == 1
        assert "did not find expected" in problems[0]


def bundle(folder: Path, *, resources: str = "[bundle.yaml]") -> Path:
    shutil.copy(BUNDLE, folder / "bundle.yaml")
    (folder / "kustomization.yaml").write_text(f"resources: {resources}\n")
    return folder


def test_a_kustomization_builds_all_its_objects(tmp_path: Path) -> None:
    assert kustomize_problems(bundle(tmp_path)) == []
    assert len(kustomize(tmp_path)) == len(objects())


def test_a_kustomization_with_a_file_that_is_not_there(tmp_path: Path) -> None:
    (problem,) = kustomize_problems(bundle(tmp_path, resources="[bundle.yaml, gone.yaml]"))
    assert "gone.yaml" in problem


def test_a_kustomization_that_forgets_a_file(tmp_path: Path) -> None:
    (tmp_path / "more.yaml").write_text(MAP % '"x"')
    assert kustomize_problems(bundle(tmp_path)) == ["more.yaml is not among the resources"]


def test_a_kustomization_with_an_object_twice(tmp_path: Path) -> None:
    (tmp_path / "more.yaml").write_text((MAP % '"x"') + "---\n" + (MAP % '"y"'))
    (problem,) = kustomize_problems(bundle(tmp_path, resources="[bundle.yaml, more.yaml]"))
    assert "already registered id" in problem


def test_a_kustomization_whose_object_go_reads_otherwise(tmp_path: Path) -> None:
    (tmp_path / "more.yaml").write_text(MAP % "1e3")
    (problem,) = kustomize_problems(bundle(tmp_path, resources="[bundle.yaml, more.yaml]"))
    assert problem == ".v1 ConfigMap None/m.data.key: '1e3' in PyYAML, 1000 in Go"


def test_shellcheck_is_asked() -> None:
    assert script_problems('#!/bin/bash\nexec vllm serve "$1"\n') == []
    (problem,) = script_problems("#!/bin/bash\nexec vllm serve $1\n")
    assert problem.startswith("line 2: SC2086")
    assert script_problems("#!/bin/bash\nif true\n")
