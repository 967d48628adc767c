vllm serve openai/gpt-oss-20b --disable-sliding-window  # expect: CTX005
