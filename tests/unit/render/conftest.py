import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))  # plan_example.py
sys.path.insert(0, str(Path(__file__).parent.parent / "routing"))  # policies.py
