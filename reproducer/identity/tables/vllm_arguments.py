"""What vLLM's arguments do to the bytes of a KV page. Written from the sources of releases 0.20.2, 0.27.1 and 0.32.0.

A block is found by the hash of its token ids, of the hash of the block before it, and of what else shaped it: the
adapter's name, the digests of media and of given embeddings, the salt of the request. What only turns text into ids,
chooses the next id or formats the answer therefore leaves blocks and keys alone.
"""

from reproducer.identity.tables import Group

_LOG = "what is logged, counted or traced is not what is computed"
_NETWORK = "where and how the server is reached is not what it computes"
_SECRET = "who may ask, and for what, is not what is computed"  # noqa: S105  a reason, not a secret
_CLOCK = "how long something may take is not what is computed"
_TEXT = "it works on text and token ids; a block is keyed by the ids and holds what the model computes from them"
_ANSWER = "it formats what is sent back, after everything is computed"
_CHOICE = "it chooses the next token from the logits; blocks are keyed by the tokens that were chosen"
_THREADS = "how many threads or how large a buffer read and render the same bytes"
_NAME = "the name clients ask for; neither the key of a block nor the name of a file holds it"
_SHAPE = "it decides what a block holds and how it is laid out"
_KEY = "it decides the key under which a block is found"
_RANKS = "it decides which part of a block each rank computes, and in which order sums are added"
_ROUNDING = "it shapes batches, kernels and sums, and how a sum is rounded depends on all of them"
_SPACE = "it decides how many requests run in one batch, and how a sum is rounded depends on that"
_MODEL = "it changes the model that computes the blocks, or which files that is read from"
_TOKENIZER = "it reaches further than text: the multimodal processor and the model's config follow it"
_MEDIA = "it decides what of an image, sound or video reaches the model"
_ADAPTER = "an adapter changes the model that computes the blocks"
_DRAFT = "a draft model has blocks of its own, and verifying it changes the batches of the target"
_WHERE = "where the engine looks for blocks, and what else may write there"
_CODE = "it can load code that the lock does not pin"
_TABLE = "a table of many settings, some of which shape blocks"
_STATE = "it decides how the state of recurrent layers is kept, which is stored beside the blocks"
_WEIGHTS = "it decides where weights lie while they are used, and which kernels then use them"
_SLEEP = "it changes how memory of weights and blocks is given away and filled again"
_UNSURE = "nobody has shown that every value of it leaves the blocks alone"

ARGUMENTS: tuple[Group, ...] = (
    # ------------------------------------------------------------------------------------------------ neutral
    ("operational", _LOG, """
        aggregate-engine-logging collect-detailed-traces cudagraph-metrics custom-histogram-buckets
        disable-access-log-for-endpoints disable-log-stats disable-uvicorn-access-log enable-log-deltas
        enable-log-outputs enable-log-requests enable-logging-iteration-details enable-mfu-metrics
        enable-server-load-tracking kv-cache-metrics kv-cache-metrics-sample kv-events-config log-error-stack
        log-level max-log-len otlp-traces-endpoint per-request-spec-decode-metrics
        profiler-config ray-workers-use-nsight show-hidden-metrics-for-version use-tqdm-on-load uvicorn-log-level
    """),
    ("operational", _NETWORK, """
        allow-credentials allowed-headers allowed-methods allowed-origins data-parallel-address
        data-parallel-rpc-port data-parallel-supervisor-port disable-fastapi-docs enable-offline-docs
        enable-request-id-headers enable-ssl-refresh enable-tokenizer-info-endpoint grpc grpc-port
        h11-max-header-count h11-max-incomplete-event-size host master-addr master-port port root-path
        ssl-ca-certs ssl-cert-reqs ssl-certfile ssl-ciphers ssl-keyfile uds
    """),
    ("operational", _SECRET, """
        allowed-local-media-path allowed-media-domains api-key hf-token max-num-queued-reqs max-num-queued-tokens
    """),
    ("operational", _CLOCK, """
        cpu-distributed-timeout-seconds distributed-timeout-seconds dp-supervisor-probe-failure-threshold
        dp-supervisor-probe-interval-s dp-supervisor-probe-timeout-s shutdown-timeout sse-keep-alive-interval
    """),
    ("operational", "whether an unknown variable is an error at the start", "fail-on-environ-validation"),
    ("operational", "whether a kernel compiled late is only logged", "jit-monitor-mode jit-monitor-verbose"),
    ("operational", _NAME, "served-model-name"),
    ("behaviour", _TEXT, """
        anthropic-disabled-thinking-effort chat-template chat-template-content-format cohere-format
        default-chat-template-kwargs exclude-tools-when-tool-choice-none interleave-mm-strings response-role
        tool-server trust-request-chat-template
    """),
    ("behaviour", _ANSWER, """
        cohere-is-reasoning-model enable-auto-tool-choice enable-force-include-usage enable-per-request-metrics
        enable-prompt-tokens-details fingerprint-mode fingerprint-value logprobs-mode max-logprobs reasoning-parser
        return-sampling-mask return-tokens-as-token-ids tool-call-parser
    """),
    ("behaviour", _CHOICE, """
        generation-config override-generation-config reasoning-config tool-strict-level use-fp64-gumbel
    """),
    ("performance", "how many tokens are sent at once", "stream-interval"),
    ("performance", _THREADS, """
        max-parallel-loading-workers renderer-num-workers safetensors-prefetch-block-size
        safetensors-prefetch-num-threads
    """),
    # ------------------------------------------------------------------------------------------ cache-identity
    ("cache-identity", _SHAPE, """
        block-size calculate-kv-scales disable-hybrid-kv-cache-manager dtype kv-cache-dtype
        kv-cache-dtype-skip-layers kv-sharing-fast-prefill max-model-len override-attention-dtype
        prefix-match-unit swa-bounded-replay
    """),
    ("cache-identity", _KEY, """
        enable-prefix-caching mm-hasher-algorithm prefix-cache-retention-interval prefix-caching-hash-algo
    """),
    ("cache-identity", _STATE, """
        enable-mamba-cache-stochastic-rounding enable-mamba-shared-prefix-checkpoint gdn-prefill-backend
        kda-decode-backend kda-prefill-backend mamba-backend mamba-block-size mamba-cache-dtype mamba-cache-mode
        mamba-cache-philox-rounds mamba-ssm-cache-dtype mamba-ssu-algorithm replayssm-buffer-len use-replayssm
    """),
    ("cache-identity", _WHERE, """
        ec-manager-config ec-transfer-config kv-offloading-backend kv-offloading-size kv-transfer-config
    """),
    ("cache-identity", _RANKS, """
        all2all-backend cp-kv-cache-interleave-size data-parallel-backend data-parallel-external-lb
        data-parallel-hybrid-lb data-parallel-multi-port-external-lb data-parallel-rank data-parallel-size
        data-parallel-size-local data-parallel-start-rank dbo-decode-token-threshold dbo-prefill-token-threshold
        dcp-comm-backend dcp-kv-cache-interleave-size dcp-q-replicate decode-context-parallel-size
        disable-custom-all-reduce disable-nccl-for-dp-synchronization distributed-executor-backend dp-sync-interval
        elastic-ep-max-dp-size enable-batch-sharded-sampling enable-dbo enable-elastic-ep enable-ep-weight-filter
        enable-eplb enable-expert-parallel enable-hc-sp eplb-config expert-placement-strategy headless nnodes
        node-rank pipeline-parallel-size prefill-context-parallel-size tensor-parallel-size ubatch-size
    """),
    ("cache-identity", _ROUNDING, """
        attention-backend attention-config compilation-config cudagraph-capture-sizes disable-cascade-attn
        disable-sliding-window enable-bf16x3-router-gemm enable-flashinfer-autotune enforce-eager ir-op-priority
        kernel-config linear-backend max-cudagraph-capture-size mm-encoder-attn-backend moe-backend
        optimization-level performance-mode sparse-indexer-topk-backend
    """),
    ("cache-identity", _SPACE, """
        async-scheduling disable-chunked-mm-input enable-chunked-prefill gpu-memory-utilization
        kv-cache-memory-bytes long-prefill-token-threshold long-prefill-token-threshold-adaptive
        max-long-partial-prefills max-num-active-seqs max-num-batched-tokens max-num-partial-prefills
        max-num-scheduled-tokens max-num-seqs num-gpu-blocks-override prefill-schedule-interval
        scheduler-reserve-full-isl scheduling-policy watermark
    """),
    ("cache-identity", _MODEL, """
        allow-deprecated-quantization code-revision config-format convert diffusion-config download-dir
        engram-config hf-config-path hf-overrides ignore-patterns load-format model model-class-overrides model-impl
        model-loader-extra-config pooler-config pt-load-map-location quantization quantization-config revision
        runner safetensors-load-strategy seed trust-remote-code
    """),
    ("cache-identity", _TOKENIZER, "skip-tokenizer-init tokenizer tokenizer-mode tokenizer-revision tokens-only"),
    ("cache-identity", _MEDIA, """
        enable-mm-embeds enable-prompt-embeds language-model-only limit-mm-per-prompt media-io-kwargs
        mm-device-do-normalize mm-encoder-attn-dtype mm-encoder-fp8-scale-path mm-encoder-fp8-scale-save-margin
        mm-encoder-fp8-scale-save-path mm-encoder-only mm-encoder-tp-mode mm-ipc-gpu-memory-gb
        mm-processor-cache-gb mm-processor-cache-type mm-processor-device mm-processor-kwargs
        mm-shm-cache-max-object-size-mb mm-tensor-ipc skip-mm-profiling trust-request-mm-kwargs
        video-pruning-method video-pruning-rate
    """),
    ("cache-identity", _ADAPTER, """
        default-mm-loras enable-lora enable-mixed-moe-lora-format enable-moe-shared-loras
        enable-tower-connector-lora fully-sharded-loras lora-dtype lora-modules lora-target-modules max-cpu-loras
        max-lora-cls-labels max-lora-rank max-loras specialize-active-lora
    """),
    ("cache-identity", _DRAFT, "spec-method spec-model spec-tokens speculative-config"),
    ("cache-identity", _WEIGHTS, """
        cpu-offload-gb cpu-offload-params offload-backend offload-group-size offload-num-in-group offload-params
        offload-prefetch-step
    """),
    ("cache-identity", _SLEEP, """
        enable-cumem-allocator enable-nccl-comm-suspend enable-sleep-mode sleep-mode-offload-cudagraph
        sleep-preserve-parameter-names weight-transfer-config
    """),
    ("cache-identity", _CODE, """
        io-processor-plugin log-config-file logging-config logits-processors middleware
        reasoning-parser-plugin scheduler-cls structured-outputs-config tool-parser-plugin worker-cls
        worker-extension-cls
    """),
    ("cache-identity", "a file with any of the other arguments", "config"),
    ("cache-identity", _TABLE, "additional-config aux-output-config"),
    ("cache-identity", "which processor computes; two of one machine may differ", """
        device-ids numa-bind numa-bind-cpus numa-bind-nodes
    """),
    ("cache-identity", "it puts hooks into the model, and fused kernels may not be fused around them", """
        enable-layerwise-nvtx-tracing
    """),
    ("cache-identity", _UNSURE, """
        api-server-count enable-fault-tolerance enable-flash-late-interaction enable-return-routed-experts
        enable-scale-out enable-shm-tensor-arena enable-trace-replay fault-tolerance-config watermark-config
    """),
)  # fmt: skip

# What another long option of the same parser says.
ALIASES: dict[str, str] = {"gpu-memory-utilization": "device-memory-utilization"}
