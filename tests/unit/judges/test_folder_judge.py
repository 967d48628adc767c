"""A folder of manifests is asked about by every judge at once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from judges.bundles import BUNDLE
from judges.manifests import folder_problems

GOOD = BUNDLE.read_text(encoding="utf-8")


def folder(path: Path, text: str = GOOD, *, resources: str = "[bundle.yaml]") -> Path:
    (path / "bundle.yaml").write_text(text, encoding="utf-8")
    (path / "kustomization.yaml").write_text(f"resources: {resources}\n")
    return path


def test_a_good_folder(tmp_path: Path) -> None:
    assert folder_problems(folder(tmp_path)) == []
    (tmp_path / "kustomization.yaml").unlink()
    assert folder_problems(tmp_path) == []


@pytest.mark.parametrize(
    ("written", "instead", "expected"),
    [
        ('value: "contracts"', "value: 12345e67", "bundle.yaml[3]"),
        ("enableServiceLinks: false", "enableServiceLink: false", "'enableServiceLink' was unexp"),
        ("claimName: contracts-weights", "claimName: weights", "(reference-missing)"),
    ],
)
def test_each_judge_is_heard(tmp_path: Path, written: str, instead: str, expected: str) -> None:
    assert GOOD.count(written) == 1
    found = folder_problems(folder(tmp_path, GOOD.replace(written, instead)))
    assert [line for line in found if expected in line]


def test_the_kustomization_is_heard(tmp_path: Path) -> None:
    shutil.copy(BUNDLE, tmp_path / "more.yaml")
    found = folder_problems(folder(tmp_path, resources="[more.yaml, bundle.yaml]"))
    assert [line for line in found if "already registered id" in line]
    assert [line for line in found if "(name-repeated)" in line]


def test_what_exists_already_may_be_referred_to(tmp_path: Path) -> None:
    path = folder(tmp_path, GOOD.replace("claimName: contracts-weights", "claimName: weights"))
    assert folder_problems(path, external=["PersistentVolumeClaim/weights"]) == []
