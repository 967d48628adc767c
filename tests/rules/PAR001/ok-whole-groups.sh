# 13,824 / 4 = 27 x 128.
vllm serve Qwen/Qwen2.5-14B-Instruct-AWQ --tensor-parallel-size 4
