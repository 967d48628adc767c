python -m vllm.entrypoints.openai.api_server Qwen/Qwen3-8B  # expect: FLG002
