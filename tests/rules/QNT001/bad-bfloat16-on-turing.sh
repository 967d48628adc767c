# gpu: t4 x 1
vllm serve org/not-known --dtype bfloat16  # expect: QNT001
