# gpu: t4 x 2
vllm serve Qwen/Qwen3-8B --max-model-len 4096 --tensor-parallel-size 2
