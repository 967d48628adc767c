vllm serve openai/gpt-oss-120b --disable-hybrid-kv-cache-manager
