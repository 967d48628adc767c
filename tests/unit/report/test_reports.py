"""What people see, word for word, and what no text of theirs can do to it."""

import io
import re
import subprocess
import sys
from pathlib import Path

import pytest
from plan_example import expect
from report_examples import (
    check_report,
    full_size_report,
    hopeless_report,
    hostile,
    no_plan,
    plan,
    probe_report,
    refused_report,
    size_report,
)

from vllm_advisor.report.console import Page
from vllm_advisor.report.findings import print_findings
from vllm_advisor.report.probe import print_probe
from vllm_advisor.report.size import print_size
from vllm_advisor.report.table import print_plan

EXPECTED = Path(__file__).parent / "expected"
REPORTS = {
    "plan": (print_plan, plan),
    "plan-infeasible": (print_plan, no_plan),
    "size": (print_size, size_report),
    "size-refused": (print_size, refused_report),
    "size-hopeless": (print_size, hopeless_report),
    "size-full": (print_size, full_size_report),
    "probe": (print_probe, probe_report),
    "check": (print_findings, check_report),
}


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in (
        "COLUMNS",
        "LINES",
        "NO_COLOR",
        "FORCE_COLOR",
        "TTY_COMPATIBLE",
        "TTY_INTERACTIVE",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("name", REPORTS)
def test_report(name, capsys):
    show, make = REPORTS[name]
    show(make())
    out, err = capsys.readouterr()
    assert err == ""
    assert not [line for line in out.splitlines() if line != line.rstrip()]
    expect(EXPECTED / f"{name}.txt", out)


def test_a_plan_of_two_instances_fits_on_a_page_or_so(capsys):
    print_plan(plan())
    assert len(capsys.readouterr().out.splitlines()) <= 70


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("columns", ["40", "100"])
def test_a_pipe_has_no_escape_codes_no_borders_and_nothing_is_cut(
    name, columns, capsys, monkeypatch
):
    monkeypatch.setenv("COLUMNS", columns)
    show, make = REPORTS[name]
    show(make())
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\u2026" not in out
    assert not re.search("[\u2500-\u257f]", out)


def test_long_words_fold_and_none_is_lost(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    name = "".join(f"x{number:02}" for number in range(40))  # 120 characters
    report = plan()
    report["alternatives"][0]["name"] = name
    report["routing"] = []
    print_plan(report)
    assert name in re.sub(r"\s", "", capsys.readouterr().out)


def test_commands_stay_whole(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    report = plan()
    model = "org/" + "m" * 90
    report["instances"][0]["command"] = f"vllm serve {model} --port 8000 --max-model-len 8192"
    print_plan(report)
    assert (
        f"  vllm serve {model} \\\n      --port 8000 --max-model-len 8192\n"
        in capsys.readouterr().out
    )


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize(
    "text",
    ["[bold]x[/bold]", "[/]", ":smile:", "\x1b[31mred\x1b[0m", "a\nb\rc\x07", "\u202egnp.exe"],
)
def test_text_is_never_markup_and_never_an_escape_code(name, text, capsys):
    show, make = REPORTS[name]
    report = make()
    for key in (
        "name",
        "model",
        "notes",
        "nearest",
        "decisions",
        "findings",
        "gpus",
        "alternatives",
    ):
        if key in report:
            report[key] = hostile(report[key], text)
    show(report)
    out = capsys.readouterr().out
    assert not [c for c in out if c != "\n" and not c.isprintable()]
    shown = text.replace("\n", " ").replace("\r", " ")
    for raw, seen in (("\x1b", "\\x1b"), ("\x07", "\\x07"), ("\u202e", "\\u202e")):
        shown = shown.replace(raw, seen)
    assert shown in out


def test_a_terminal_gets_colours_unless_no_color_is_set(monkeypatch):
    def painted():
        stream = Terminal()
        monkeypatch.setattr("sys.stdout", stream)
        print_findings(check_report())
        return re.findall(r"\x1b\[([0-9;]*)m", stream.getvalue())

    assert "1;31" in painted()  # bold red
    monkeypatch.setenv("NO_COLOR", "1")
    assert {code for code in painted() if code not in ("0", "1", "2")} == set()


def test_a_terminal_draws_a_line_under_the_head_of_a_table():
    stream = Terminal()
    Page(stream).table(("a", "b"), [("1", "2")])
    assert "\u2500" in stream.getvalue()


def test_a_stream_that_knows_ascii_only_does_not_crash():
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    Page(stream).text("caf\u00e9")
    stream.flush()
    assert raw.getvalue() == b"caf\\xe9\n"


def test_importing_the_reports_does_not_load_rich():
    modules = ["table", "size", "probe", "explain", "findings", "structured", "console"]
    imports = "; ".join(f"import vllm_advisor.report.{module}" for module in modules)
    code = f"import sys; {imports}; sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
