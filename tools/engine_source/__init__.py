"""Reads what a vLLM release knows out of its source, without importing or running any of it."""
