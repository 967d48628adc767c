# A prompt of 1,077 tokens and max_tokens of 32,000: 33,077 (BerriAI/litellm#12680).
# class: {name: writing, prompt_tokens: 1077, output_tokens: 32000, concurrent_requests: 1}
vllm serve Qwen/Qwen3-8B --max-model-len 32768  # expect: CTX011
