# class: {name: rag, prompt_tokens: 35000, output_tokens: 5120, concurrent_requests: 1}
vllm serve Qwen/Qwen3-8B
