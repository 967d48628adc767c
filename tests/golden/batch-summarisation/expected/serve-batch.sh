#!/usr/bin/env bash
# Instance batch (short) of the plan batch-summarisation.
# Serves: summaries.
#
# 1 replica of 2 GPUs (NVIDIA H100 80GB HBM3). To start it:
#   CUDA_VISIBLE_DEVICES=0,1 ./serve-batch.sh
# Arguments given to this script come last and win over those below.
#
# Once it runs, vLLM's log should say:
#   GPU KV cache size: 451,184 tokens, Maximum concurrency for 8,192 tokens per request: 55.08x
#
# For vLLM 0.33.0; written by vllm-advisor 0.1.0. PLAN.md has the whole reasoning.
set -euo pipefail

args=(
  # clients and routers ask for the role by name; the model's own name keeps working
  # [batch.served-model-name; formula:role-names]
  --served-model-name meta-llama/Llama-3.3-70B-Instruct batch
  # divides weights over 2 GPUs of one node, and the KV heads with them
  # [batch.tensor-parallel-size; formula:cheapest-candidate]
  --tensor-parallel-size 2
  # class summaries needs 8,100 tokens of prompt and answer; rounded up to 1,024 and no
  # further: every token of it has to fit at start-up [batch.max-model-len;
  # user:batch-summarisation.yaml:8]
  --max-model-len 8192
  # vLLM's default for this version; stated because older versions took 0.90
  # [batch.gpu-memory-utilization; vllm-default:0.33.0:gpu_memory_utilization]
  --gpu-memory-utilization 0.92
  # weights are quantized to FP8 while loading: the first step of the memory ladder, and
  # it saves GPUs. A published FP8 checkpoint, nvidia/Llama-3.3-70B-Instruct-FP8, would
  # load half the bytes [batch.quantization; formula:memory-ladder]
  --quantization fp8
  # shrinks the KV cache of a request to 640.00 MiB per GPU; FLASH_ATTN takes it on
  # NVIDIA H100 80GB HBM3 [batch.kv-cache-dtype;
  # vllm:0.33.0:vllm/platforms/cuda.py#get_attn_backend_cls]
  --kv-cache-dtype fp8
  # 33 requests at once over 1 replica, a quarter more, in eights; the profile run pays
  # activation memory for every sequence [batch.max-num-seqs; formula:sequences]
  --max-num-seqs 48
  # throughput above all: large chunks read prompts with fewer passes over the weights,
  # and nobody waits for the next token [batch.max-num-batched-tokens;
  # docs:docs.vllm.ai/en/latest/configuration/optimization]
  --max-num-batched-tokens 16384
  # class summaries shares a prefix of 200 tokens, held once. On by default; stated so
  # that it stays on [batch.enable-prefix-caching;
  # vllm-default:0.33.0:enable_prefix_caching]
  --enable-prefix-caching
  # a server told to stop finishes its requests for up to 45 s (what llm-d waits);
  # vLLM's default of 0 aborts them [batch.shutdown-timeout;
  # vllm:0.33.0:vllm/config/vllm.py#VllmConfig.shutdown_timeout]
  --shutdown-timeout 45
  # instances on one host listen on ports of their own; replicas take the ports that
  # follow [batch.port; formula:first-free-port]
  --port 8000
)

# the model the workload names [batch.model; user:batch-summarisation.yaml:4]
exec vllm serve meta-llama/Llama-3.3-70B-Instruct "${args[@]}" "$@"
