vllm serve nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16 --trust-remote-code --code-revision 0123456789abcdef0123456789abcdef01234567

vllm serve nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16
