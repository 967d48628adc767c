"""``check`` against what became of real deployments: faults found, and sound ones left alone.

A case is a command, manifest or values file that somebody deployed, with what vLLM, Kubernetes or
the users said of it. A case counts as found when one of the rules that name its fault reports it.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from vllm_advisor.api.checking import CheckReport, check
from vllm_advisor.knowledge.model_profiles import find_model_profile
from vllm_advisor.types.finding import Severity

CASES = Path(__file__).parents[1] / "tests" / "data" / "real_cases.yaml"
_OPTIONS = ("gpu", "gpu_count", "vllm_version")


@dataclass(frozen=True, slots=True)
class RealCase:
    """One deployment: ``level`` is what it deserved, ``rules`` name the fault."""

    id: str
    level: str
    rules: tuple[str, ...]
    entry: dict[str, Any]

    @property
    def why_not(self) -> str:
        """Why check is known not to find it; empty where it has to."""
        return str(self.entry.get("not_found", ""))

    def report(self, scratch: Path) -> CheckReport:
        """What check says of it."""
        options = {name: self.entry[name] for name in _OPTIONS if name in self.entry}
        if "config" in self.entry:
            options["model_config"] = str(scratch / f"{self.id}.json")
            Path(options["model_config"]).write_text(json.dumps(self._config()), encoding="utf-8")
        if "classes" in self.entry:
            options["workload"] = str(scratch / f"{self.id}.yaml")
            classes = yaml.safe_dump({"classes": self.entry["classes"]})
            Path(options["workload"]).write_text(classes, encoding="utf-8")
        return check("-", text=self.entry["text"], kind=self.entry["kind"], **options)

    def missed(self, report: CheckReport) -> str:
        """What is wrong with the report; empty where it is right."""
        found = {f.rule for f in report.findings}
        if self.level == "ok":
            wrong = [f.rule for f in report.findings if f.severity is not Severity.INFO]
            return f"reported for nothing: {', '.join(wrong)}" if wrong else ""
        if found & set(self.rules):
            return ""
        return f"{' or '.join(self.rules)} not found, only {', '.join(sorted(found)) or 'nothing'}"

    def _config(self) -> dict[str, Any]:
        """The model's config: that of a bundled ``base`` with the keys that differ."""
        keys = dict(self.entry["config"])
        profile = find_model_profile(keys.pop("base", ""))
        return {**(profile.config if profile else {}), **keys}


def real_cases() -> tuple[RealCase, ...]:
    """All of them, as the file has them."""
    entries = yaml.safe_load(CASES.read_text("utf-8"))
    return tuple(RealCase(e["id"], e["level"], tuple(e.get("rules", ())), e) for e in entries)


def main() -> None:
    """Print the shares, and every miss."""
    cases, right = real_cases(), Counter[str]()
    with tempfile.TemporaryDirectory() as scratch:
        for case in cases:
            missed = case.missed(case.report(Path(scratch)))
            right[case.level] += not missed
            if missed:
                print(f"  {case.id}: {missed}")
    of_level = Counter(case.level for case in cases)
    for level, what in (
        ("error", "faults that stopped a deployment, found"),
        ("warning", "faults that cost memory, speed or safety, found"),
        ("ok", "sound deployments with no error and no warning"),
    ):
        share = right[level] / of_level[level]
        print(f"check, {what}: {right[level]} of {of_level[level]} ({share:.0%})")


if __name__ == "__main__":
    main()
