# class: {name: chat, prompt_tokens: 2000, output_tokens: 500, concurrent_requests: 20}
vllm serve Qwen/Qwen3-8B --max-model-len 4096
