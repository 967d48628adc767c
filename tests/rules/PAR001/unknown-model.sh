vllm serve org/not-known --tensor-parallel-size 3
