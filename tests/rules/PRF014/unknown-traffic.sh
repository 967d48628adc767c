# gpu: h100-sxm x 4
vllm serve Qwen/Qwen3-Next-80B-A3B-Instruct --tensor-parallel-size 4 --max-model-len 32768 --max-num-seqs 64
