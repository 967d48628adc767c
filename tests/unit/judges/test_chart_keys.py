"""The keys a chart reads: Go templates are followed through each of their ways to a value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tool_modules import tool


def keys(folder: Path, **templates: str) -> dict[str, Any]:
    (folder / "templates").mkdir()
    (folder / "Chart.yaml").write_text("name: c\nversion: 1.0.0\n")
    for name, text in templates.items():
        (folder / "templates" / f"{name}.yaml").write_text(text)
    found = tool("chart_keys").chart_keys(folder)
    assert found.pop("global") == {"**": {}}
    return found


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{ .Values.a.b }}", {"a": {"b": {}}}),
        ("{{- .Values.a | quote -}}", {"a": {}}),
        ("{{ $.Values.a }}{{ .Release.Name }}{{ .Chart.Name }}", {"a": {}}),
        ('{{ default "x" .Values.a }} {{ ".Values.no" }} {{/* .Values.no */}}', {"a": {}}),
        ("{{ if and .Values.a (not .Values.b) }}{{ else if .Values.c }}{{ end }}",
         {"a": {}, "b": {}, "c": {}}),
        ('{{ if hasKey .Values.a "k" }}{{ end }}', {"a": {"k": {}}}),
        ('{{ $x := index .Values "a" "b" | default dict }}{{ index $x "c" }}{{ $x.d }}',
         {"a": {"b": {"c": {}, "d": {}}}}),
        ("{{ with .Values.a }}{{ .b }}{{ else }}{{ .Values.c }}{{ end }}{{ .Values.d }}",
         {"a": {"b": {}}, "c": {}, "d": {}}),
        ("{{ with .Values.a }}{{ with .b }}{{ .c }}{{ end }}{{ $.Values.d }}{{ end }}",
         {"a": {"b": {"c": {}}}, "d": {}}),
        ("{{ range .Values.a }}{{ .b }}{{ end }}", {"a": {"[]": {"b": {}}}}),
        ("{{ range $one := .Values.a }}{{ with $ }}{{ $one.b }}{{ .Values.c }}{{ end }}{{ end }}",
         {"a": {"[]": {"b": {}}}, "c": {}}),
        ("{{ range $key, $one := .Values.a }}{{ $one.b }}{{ end }}", {"a": {"*": {"b": {}}}}),
        ("{{ toYaml .Values.a | nindent 2 }}", {"a": {"**": {}}}),
        ("{{ with .Values.a }}{{ toYaml . }}{{ end }}", {"a": {"**": {}}}),
        ("{{ range .Values.a }}{{ tpl . $ }}{{ end }}", {"a": {"[]": {"**": {}}}}),
        (("{{ $x := .Values.a | default list }}{{ if .Values.c }}{{ $x = .Values.b }}{{ end }}"
         "{{ toYaml $x }}"), {"a": {"**": {}}, "b": {"**": {}}, "c": {}}),
    ],
)  # fmt: skip
def test_ways_to_a_value(tmp_path: Path, template: str, expected: dict[str, Any]) -> None:
    assert keys(tmp_path, one=template) == expected


def test_includes_are_followed_with_what_they_are_given(tmp_path: Path) -> None:
    helper = (
        '{{ define "probe" }}{{ .period }}{{ if .exec }}{{ range .exec.words }}{{ . }}{{ end }}'
        '{{ end }}{{ end }}{{ define "port" }}{{ .Values.port }}{{ end }}'
        '{{ define "unused" }}{{ .Values.never }}{{ end }}'
    )
    user = (
        '{{ include "port" $ }}{{ with .Values.startup }}{{ include "probe" . | nindent 2 }}{{ end }}'
        '{{ include "probe" .Values.ready }}{{ include "names" (dict "a" .Values.b) }}'
        '{{ define "names" }}{{ .a }}{{ end }}'
    )
    probe = {"period": {}, "exec": {"words": {"[]": {}}}}
    assert keys(tmp_path, a_user=user, helper=helper) == {
        "b": {}, "port": {}, "ready": probe, "startup": probe,
    }  # fmt: skip


def test_subcharts_take_what_they_are_given(tmp_path: Path) -> None:
    found = keys(tmp_path, one="{{ .Values.a }}")
    assert found == {"a": {}}
    chart = tmp_path / "Chart.yaml"
    chart.write_text(chart.read_text() + "dependencies: [{name: sub}, {name: x, alias: y}]\n")
    found = tool("chart_keys").chart_keys(tmp_path)
    assert found["sub"] == found["y"] == {"**": {}}


def test_a_library_beside_is_read_where_it_is_included(tmp_path: Path) -> None:
    library = tmp_path / "library"
    (library / "templates").mkdir(parents=True)
    (library / "Chart.yaml").write_text("{name: sub, version: 1.0.0, type: library}")
    (library / "templates" / "_pool.tpl").write_text(
        '{{ define "pool" }}{{ .Values.sub.ports }}{{ end }}{{ define "x" }}{{ .Values.no }}{{ end }}'
    )
    folder = tmp_path / "chart"
    folder.mkdir()
    assert keys(folder, one='{{ include "other" . }}{{ define "other" }}{{ end }}') == {}
    chart = folder / "Chart.yaml"
    chart.write_text(
        chart.read_text() + "dependencies: [{name: sub, repository: 'file://../library'}]\n"
    )
    (folder / "templates" / "one.yaml").write_text('{{ include "pool" . }}')
    found = tool("chart_keys").chart_keys(folder)
    assert found == {"global": {"**": {}}, "sub": {"ports": {}}}


def test_a_schema_keeps_what_validates() -> None:
    schema = {
        "description": "all", "type": "object",
        "properties": {"description": {"type": "string", "title": "t"}, "default": {"enum": [1]}},
    }  # fmt: skip
    assert tool("chart_keys").without_prose(schema) == {
        "type": "object", "properties": {"description": {"type": "string"}, "default": {"enum": [1]}},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("chart", "version", "repository"),
    [
        ("vllm-stack", "0.1.12", "vllm-project/production-stack"),
        ("llm-d-router-gateway", "0.10.0", "llm-d/llm-d-router"),
    ],
)
def test_a_profile_says_where_it_is_from(chart: str, version: str, repository: str) -> None:
    path = tool("chart_keys").OUT / f"{chart}-{version}.json"
    profile = json.loads(path.read_text(encoding="utf-8"))
    assert (profile["chart"], profile["version"]) == (chart, version)
    assert profile["source"].startswith(f"{repository}@")
    assert profile["licence"] == "Apache-2.0"
