# gpu: l40s x 4
vllm serve Qwen/Qwen3-8B --max-model-len 8192 --max-num-seqs 16 --tensor-parallel-size 4
