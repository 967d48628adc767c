# Some models overflow in float16.
# gpu: t4 x 1
vllm serve org/not-known --dtype half
