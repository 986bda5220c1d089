"""Twenty variables that users export for their own servers; each changes an engine."""

HOSTILE = {
    "LLAMA_ARG_CACHE_TYPE_K": "q8_0",
    "LLAMA_ARG_CACHE_TYPE_V": "q8_0",
    "LLAMA_ARG_SPEC_TYPE": "ngram-simple",
    "LLAMA_ARG_N_PARALLEL": "4",
    "LLAMA_ARG_CTX_SIZE": "256",
    "LLAMA_ARG_THREADS": "1",
    "LLAMA_ARG_BATCH": "8",
    "LLAMA_ARG_UBATCH": "8",
    "LLAMA_ARG_FLASH_ATTN": "off",
    "LLAMA_ARG_NO_REPACK": "1",
    "LLAMA_ARG_TEMP": "1.5",
    "LLAMA_ARG_LOG_FILE": "elsewhere.log",
    "LLAMA_ARG_API_KEY": "secret",
    "LLAMA_LOG_VERBOSITY": "0",
    "LLAMA_GRAPH_REUSE_DISABLE": "1",
    "GGML_OP_OFFLOAD_MIN_BATCH": "1",
    "GGML_CUDA_FORCE_MMQ": "1",
    "OMP_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "passive",
    "CUDA_VISIBLE_DEVICES": "",
}
