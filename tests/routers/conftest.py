"""Where the policies are that the routers are rendered from."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "routing"))  # policies.py
