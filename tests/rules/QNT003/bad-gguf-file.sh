vllm serve /models/model-Q4_K_M.gguf --tokenizer /models  # expect: QNT003
