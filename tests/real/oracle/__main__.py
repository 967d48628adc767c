# ruff: noqa: T201  (a command line prints)
"""Command line: answer a table's questions anew, or one about a model folder."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from .compare import differences
from .forks import answers
from .gpus import GPUS
from .questions import (
    DEFAULT_AVAILABLE,
    Question,
    question_about,
    questions_of,
    read_configs,
    read_rows,
    sample,
)

DATA = Path(__file__).resolve().parents[2] / "data"


def main() -> int:
    """Run it; 1 if a question of a table was not answered."""
    given = _arguments()
    if given.model:
        question = question_about(
            given.model,
            gpu=given.gpu,
            engine_args=json.loads(given.args),
            available=tuple(given.available),
            verbose=given.verbose,
        )
        for _, row in answers([question], timeout=given.timeout):
            print(json.dumps(row, indent=None if given.out else 2))
        return 0
    return _answer_table(given)


def _answer_table(given: argparse.Namespace) -> int:
    rows = read_rows(given.rows)
    questions = questions_of(rows, read_configs(given.configs), verbose=given.verbose)
    chosen = [
        number
        for number, row in enumerate(rows)
        if given.only in f"{row['model']} {row['gpu']} {row['tag']}"
    ]
    if given.sample:
        chosen = sample(chosen, [_architecture(question) for question in questions], given.sample)
    out = given.out or given.rows
    partial = out.with_name(f"{out.name}.partial")
    done = (
        {int(line["number"]): line["row"] for line in read_rows(partial)}
        if (partial.exists())
        else {}
    )
    by_identity = {id(questions[number]): number for number in chosen}
    missing = [questions[number] for number in chosen if number not in done]
    started, differing = time.monotonic(), 0
    with partial.open("a", encoding="utf-8") as file:
        for count, (question, row) in enumerate(answers(missing, timeout=given.timeout), 1):
            number = by_identity[id(question)]
            done[number] = row
            file.write(json.dumps({"number": number, "row": row}) + "\n")
            file.flush()
            changed = differences(rows[number], row)
            differing += bool(changed)
            _report(question, count, len(missing), changed)
    text = "".join(json.dumps(done[number], separators=(",", ":")) + "\n" for number in chosen)
    out.write_text(text, encoding="utf-8")
    partial.unlink()
    seconds = time.monotonic() - started
    print(f"{len(missing)} asked, {differing} answered otherwise, {seconds:.0f} s: {out}")
    return int(any(row.get("error", "").startswith("oracle:") for row in done.values()))


def _architecture(question: Question) -> str:
    return str(question.config["architectures"])


def _report(question: Question, count: int, total: int, changed: list[str]) -> None:
    name = f"{question.model} {question.gpu} {question.tag}"
    print(f"[{count}/{total}] {name}: {'differs' if changed else 'equal'}", flush=True)
    for line in changed[:6]:
        print(f"    {line[:300]}", flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m oracle", description=__doc__)
    parser.add_argument("--model", type=Path, metavar="DIR", help="ask about this model folder")
    parser.add_argument("--gpu", choices=sorted(GPUS), default="h100")
    parser.add_argument("--args", default="{}", metavar="JSON", help="fields of EngineArgs")
    parser.add_argument(
        "--available",
        type=lambda text: [int(float(size)) for size in text.split(",")],
        default=list(DEFAULT_AVAILABLE),
        metavar="BYTES,...",
        help="per GPU for the KV cache",
    )
    parser.add_argument("--rows", type=Path, default=DATA / "oracle.jsonl", metavar="FILE")
    parser.add_argument("--configs", type=Path, default=DATA / "oracle_configs.full.json.xz")
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: the table itself")
    parser.add_argument("--only", default="", metavar="TEXT", help="in 'model gpu tag'")
    parser.add_argument("--sample", type=int, metavar="N", help="N rows over all architectures")
    parser.add_argument("--timeout", type=float, default=240, metavar="SECONDS")
    parser.add_argument(
        "--verbose", action="store_true", help="layer specs, groups, parameters by name, the log"
    )
    given = parser.parse_args()
    if (given.only or given.sample) and not given.out and not given.model:
        parser.error("a part of the table would replace it all: name another file with --out")
    return given


if __name__ == "__main__":
    sys.exit(main())
