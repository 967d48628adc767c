# gpu: t4 x 4
vllm serve Qwen/Qwen3-8B --dtype half --max-model-len 4096 --tensor-parallel-size 4
