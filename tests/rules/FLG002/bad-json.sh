vllm serve Qwen/Qwen3-8B --speculative-config {"method":"ngram","num_speculative_tokens":5}  # expect: FLG002
