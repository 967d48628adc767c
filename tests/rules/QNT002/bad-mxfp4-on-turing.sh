# gpu: t4 x 1
vllm serve org/not-known --quantization mxfp4  # expect: QNT002
