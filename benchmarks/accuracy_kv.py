"""KV cache tokens, concurrency, defaults and refusals against vLLM 0.33.0's own code.

Goes over every row of tests/data/oracle.jsonl and prints each miss.
"""

from __future__ import annotations

from collections import Counter

from oracle_rows import NO_LMCACHE, NOT_MODELLED, ROWS, answered, differences, lay_out, name_of

from vllm_advisor.errors import AdvisorError


def main() -> None:
    counts: Counter[str] = Counter()
    for row in ROWS:
        started = answered(row)
        runs = len(row.get("runs", ())) if started else 1
        try:
            wrong = differences(row) if started else [f"sized, not refused: {lay_out(row)[1]}"]
        except AdvisorError as error:
            said = row["tag"] in NOT_MODELLED
            wrong = [f"refused: {error}"] if started and not said else []
            if said:
                counts["not modelled"] += runs
                continue
        if row["tag"] == NO_LMCACHE:
            continue
        counts["different" if wrong else ("equal" if started else "refused as vLLM does")] += runs
        for line in wrong:
            print(f"MISS {name_of(row)}: {line}")
    print(
        f"KV cache: {counts['equal']} of {counts['equal'] + counts['different']} answers about "
        f"{len({r['model'] for r in ROWS})} models equal vLLM 0.33.0's own code: defaults, "
        "backend, block size, blocks, tokens, concurrency, longest context."
    )
    print(
        f"{counts['refused as vLLM does']} settings that vLLM refuses are refused; "
        f"{counts['not modelled']} answers are about arguments said to be not modelled "
        f"({', '.join(sorted(set(NOT_MODELLED.values())))})."
    )
    print("Compared with: tests/data/oracle.jsonl.")


if __name__ == "__main__":
    main()
