vllm serve Qwen/Qwen3-8B --enable-auto-tool-choice --tool-call-parser qwen  # expect: FLG005
