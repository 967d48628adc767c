vllm serve Qwen/Qwen3-Next-80B-A3B-Instruct --speculative-config '{"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4}'  # expect: SPD003
