#!/usr/bin/env bash
# Instance chat (short) of the plan rag-assistant.
# Serves: chat, manuals.
#
# 1 replica of 1 GPU (NVIDIA L40S). To start it:
#   CUDA_VISIBLE_DEVICES=0 ./serve-chat.sh
# Arguments given to this script come last and win over those below.
#
# Once it runs, vLLM's log should say:
#   GPU KV cache size: 593,312 tokens, Maximum concurrency for 7,168 tokens per request: 82.77x
#
# For vLLM 0.33.0; written by vllm-advisor 0.1.0. PLAN.md has the whole reasoning.
set -euo pipefail

args=(
  # clients and routers ask for the role by name; the model's own name keeps working
  # [chat.served-model-name; formula:role-names]
  --served-model-name Qwen/Qwen2.5-7B-Instruct chat rag
  # class chat needs 7,000 tokens of prompt and answer; rounded up to 1,024 and no
  # further: every token of it has to fit at start-up [chat.max-model-len;
  # user:rag-assistant.yaml:8]
  --max-model-len 7168
  # vLLM's default for this version; stated because older versions took 0.90
  # [chat.gpu-memory-utilization; vllm-default:0.33.0:gpu_memory_utilization]
  --gpu-memory-utilization 0.92
  # weights are quantized to FP8 while loading: the first step of the memory ladder, and
  # it saves GPUs [chat.quantization; formula:memory-ladder]
  --quantization fp8
  # 38 requests at once over 1 replica, a quarter more, in eights; the profile run pays
  # activation memory for every sequence [chat.max-num-seqs; formula:sequences]
  --max-num-seqs 48
  # class chat asks for 50 ms between tokens: a step with 512 prompt tokens is estimated
  # to take 37 ms, one with 1,024 55 ms [chat.max-num-batched-tokens;
  # docs:docs.vllm.ai/en/latest/configuration/optimization]
  --max-num-batched-tokens 512
  # class chat shares a prefix of 300 tokens, held once. On by default; stated so that
  # it stays on [chat.enable-prefix-caching; vllm-default:0.33.0:enable_prefix_caching]
  --enable-prefix-caching
  # a server told to stop finishes its requests for up to 45 s (what llm-d waits);
  # vLLM's default of 0 aborts them [chat.shutdown-timeout;
  # vllm:0.33.0:vllm/config/vllm.py#VllmConfig.shutdown_timeout]
  --shutdown-timeout 45
  # instances on one host listen on ports of their own; replicas take the ports that
  # follow [chat.port; formula:first-free-port]
  --port 8000
)

# the model the workload names [chat.model; user:rag-assistant.yaml:4]
exec vllm serve Qwen/Qwen2.5-7B-Instruct "${args[@]}" "$@"
