vllm serve org/not-known --enable-auto-tool-choice --tool-call-parser openai
