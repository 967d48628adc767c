vllm serve Qwen/Qwen3-8B --max-num-seqs 1024
