"""Which rules run: words of the command line and of .vllm-advisor.yaml."""

from __future__ import annotations

from pathlib import Path

import pytest

from vllm_advisor.api.checking import check
from vllm_advisor.api.rule_choice import CheckOptions, check_options, find_config
from vllm_advisor.errors import InputError
from vllm_advisor.rules.registry import all_rules

ALL = frozenset(rule.id for rule in all_rules())
FAMILY = {rule.id for rule in all_rules() if rule.family == "FLG"}


def config(folder: Path, text: str) -> Path:
    path = folder / ".vllm-advisor.yaml"
    path.write_text(text)
    return path


def test_everything_runs_unless_told_otherwise() -> None:
    assert check_options() == CheckOptions()
    assert CheckOptions().rules == ALL
    assert CheckOptions().fail_on == "error"


def test_select_and_ignore() -> None:
    assert check_options(select=["FLG"]).rules == FAMILY
    assert check_options(select=["FLG,KV001", "unknown-flag"]).rules == {*FAMILY, "KV001"}
    assert check_options(ignore=["FLG001, SUP"]).rules == ALL - {"FLG001", "SUP001", "SUP002"}
    assert check_options(select=["FLG"], ignore=["FLG002"]).rules == FAMILY - {"FLG002"}


def test_the_command_line_wins_key_by_key(tmp_path: Path) -> None:
    file = config(tmp_path, "select: [FLG]\nignore: [FLG001]\nfail_on: warning\n")
    assert check_options(config=file).rules == FAMILY - {"FLG001"}
    assert check_options(config=file).fail_on == "warning"
    given = check_options(config=file, ignore=["FLG002"], fail_on="never")
    assert given.rules == FAMILY - {"FLG002"}
    assert given.fail_on == "never"
    assert check_options(config=file, select=["FLG001,KV001"]).rules == {"KV001"}


def test_rules_of_some_paths_only(tmp_path: Path) -> None:
    file = config(tmp_path, 'per_path_ignores:\n  "old/*": [FLG]\n  "*/a.sh": [KV001]\n')
    options = check_options(config=file)
    assert options.rules_for(str(tmp_path / "new" / "b.sh")) == ALL
    assert options.rules_for(str(tmp_path / "old" / "deep" / "b.sh")) == ALL - FAMILY
    assert options.rules_for(str(tmp_path / "old" / "a.sh")) == ALL - FAMILY - {"KV001"}


def test_findings_on_such_paths_are_left_out(tmp_path: Path) -> None:
    options = check_options(config=config(tmp_path, 'per_path_ignores: {"old*": [FLG]}'))
    found = {}
    for name in ("old.sh", "new.sh"):
        path = tmp_path / name
        path.write_text("vllm serve Qwen/Qwen3-8B --nonsense\n")
        found[name] = [f.rule for f in check(path, options=options).findings]
    assert found == {"old.sh": [], "new.sh": ["FLG001"]}


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("select: [KV001, KV999]", "1:17", "'KV999'"),
        ("ignore:\n  - FLG001\n  - nothing", "3:5", "'nothing'"),
        ("per_path_ignores: {'*.sh': [XX]}", "1:29", "'XX'"),
        ("selects: [KV001]", "1:1", "selects"),
        ("fail_on: fatal", "1:1", "fail_on"),
        ("select: KV001", "1:1", "select"),
        ("select: []", "1:1", "select"),
        ("select: [KV001", "1:9", "YAML"),
    ],
)
def test_what_is_wrong_in_the_file_is_told_at_its_place(
    tmp_path: Path, text: str, where: str, what: str
) -> None:
    file = config(tmp_path, text)
    with pytest.raises(InputError) as refused:
        check_options(config=file)
    assert refused.value.where == f"{file}:{where}"
    assert what in refused.value.what


@pytest.mark.parametrize("words", [[""], ["KV001", " , "]])
def test_an_option_that_names_nothing_is_refused(words: list[str]) -> None:
    with pytest.raises(InputError, match="names no rule"):
        check_options(select=words)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        check_options(config=tmp_path / "absent.yaml")


def test_the_nearest_file_counts(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    script = deep / "serve.sh"
    script.write_text("")
    upper = config(tmp_path, "ignore: [KV001]")
    assert find_config(script) == find_config(deep) == upper
    nearer = config(deep, "ignore: [KV002]")
    assert find_config(script) == nearer
    assert find_config(tmp_path / "a") == upper
