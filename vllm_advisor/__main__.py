"""python -m vllm_advisor."""

from vllm_advisor.cli import main

if __name__ == "__main__":
    main()
