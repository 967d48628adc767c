# gpu: t4 x 1
vllm serve org/not-known
