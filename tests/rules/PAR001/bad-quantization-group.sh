# 13,824 inputs / 8 ranks = 1,728 = 13.5 groups of 128.
vllm serve Qwen/Qwen2.5-14B-Instruct-AWQ --tensor-parallel-size 8  # expect: PAR001
