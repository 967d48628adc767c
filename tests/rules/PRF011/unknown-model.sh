vllm serve some/unknown-model --max-num-seqs 64 --max-num-batched-tokens 256
