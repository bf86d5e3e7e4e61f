"""What SGLang's arguments do to the bytes of a KV page.

Over the releases 0.5.7, 0.5.10.post1, 0.5.17 and 0.5.23: a reason holds for every value in each of them. A page is
keyed by the token ids before it, so what only turns text into ids, chooses the next id or formats the answer leaves its
bytes alone. Where there is doubt the class is `cache-identity`: a wrong miss costs one cold prompt, a wrong hit the
answer.
"""

from collections.abc import Mapping

from reproducer.identity.tables import Group

# The other spellings of an argument, by its canonical name: its first long option, that of the earliest release where
# releases differ, so that a lock keeps its namespace. `tp` and `dp` are abbreviations that the engine's parser takes.
ALIASES: Mapping[str, str] = {
    "attention-context-parallel-size": "attn-cp-size",
    "attn-dp-size": "attention-data-parallel-size",
    "cuda-graph-prefill-max-context": "context-bucket",
    "data-parallel-size": "dp dp-size",
    "dcp-size": "decode-context-parallel-size",
    "dist-init-addr": "nccl-init-addr",
    "enable-hierarchical-cache": "enable-hicache",
    "expert-parallel-size": "ep ep-size",
    "hisparse-config": "hierarchical-sparse-attention-extra-config",
    "model-path": "model",
    "moe-data-parallel-size": "moe-dp-size",
    "pipeline-parallel-size": "pp-size",
    "smg-http-sidecar-port": "grpc-http-sidecar-port",
    "speculative-draft-model-path": "speculative-draft-model",
    "tensor-parallel-size": "tp tp-size",
}

_LOG = "what is logged, counted or traced is not what is computed"
_NETWORK = "where and how the server is reached is not what it computes"
_SECRET = "who may ask is not what is computed"  # noqa: S105  a reason, not a secret
_CLOCK = "how long something may take is not what is computed"
_CHECK = "it checks the files of the model and changes none"
_STOP = "what happens once the server has ended"
_TEXT = "it works on text and token ids; a page is keyed by the ids and holds what the model computes from them"
_ANSWER = "it decides what an answer carries, after the tokens are chosen"
_CARDS = "over which network cards bytes travel, unchanged"
_REFUSED = "it turns requests away or cuts them short; what is computed keeps its pages"
_CHOICE = "it chooses the next token from the logits; pages are keyed by the tokens that were chosen"
_CAPACITY = "how many pages fit into a tier and which leave it first, not what a page holds"
_WHEN = "when pages move between tiers, whole ones only, not what a page holds"
_STREAM = "how often tokens that are already chosen are sent"
_WORKERS = "how many processes and threads cut text into the same tokens and back"
_MEDIA = "how many media are fetched at once, and how many results are kept"
_HOST = "how the Python processes wait and collect garbage"
_OUTLINES = "whether compiled grammars are kept on disk"
_READ = "how the same bytes of the weights are read from disk"
_PAGE_NAME = "the engine writes it into the name of every page, so another name finds none of the pages"
_EVENTS = "with events on, the engine hashes pages at another moment, from what its tree holds then"
_SEED = "dummy weights are drawn from it"
_UNPINNED = "it brings arguments, code or files that the lock does not pin, or deletes those that it does"
_BEFORE = "it decides what runs before the first request, while kernels are tuned and compiled"
_GRAPH = "it decides which captured or compiled program runs, and for which shapes; another one may round otherwise"
_WHERE = "where the engine looks for pages, in some releases"
_PLUGIN = "a table of whatever the storage behind the pages takes"
_TIER = "it decides which code keeps pages and how it lays them out"
_SPECULATIVE = "it shapes the pass that verifies a draft, and that pass writes the pages of generated tokens"
_LORA = "an adapter changes the model that computes the pages"
_STATE = "it decides what is kept of a recurrent state, in which type, and when"
_ELSEWHERE = "pages, embeddings or weights come from another server, which the lock does not pin"
_IMAGES = "it decides what an image becomes before the model, and which ids stand for it"
_TOKENIZER = (
    "a model with an n-gram memory hashes ids through the tokenizer, and another tokenizer is pinned by no digest"
)
_HOOK = "it puts code into the forward pass or takes values out of it"
_OFFLOAD = "it decides where weights lie, and with that which kernels compute with them"
_SUMS = "it decides how ranks exchange and add up their parts, and how a sum is rounded depends on that"
_EXPERTS = "it decides which expert computes where and how, and how their outputs are added up"
_BATCH = "it decides which tokens are computed together, and how a sum is rounded depends on that"
_SHAPE = "it decides what a page holds and how it is laid out"
_KERNEL = "it decides which kernels run and how they split their sums; another one rounds otherwise"
_RANKS = "it decides which part of a page each rank computes and writes"
_MODEL = "it changes the model that computes the pages, or the bytes of its weights"
_DEVICE = "it decides which processors compute, and how many share a sum"

_NEUTRAL: tuple[Group, ...] = (
    ("operational", _LOG, """
        bucket-e2e-request-latency bucket-inter-token-latency bucket-time-to-first-token collect-tokens-histogram
        crash-dump-folder decode-log-interval enable-cache-report enable-forward-pass-metrics enable-metrics
        enable-metrics-for-all-schedulers enable-mfu-metrics enable-request-time-stats-logging enable-trace
        export-metrics-to-file export-metrics-to-file-dir extra-metric-labels forward-pass-metrics-ipc-name
        forward-pass-metrics-worker-id gc-warning-threshold-secs generation-tokens-buckets load-publish-endpoint
        log-level log-level-http log-requests log-requests-format log-requests-level log-requests-target
        otlp-service-name otlp-traces-endpoint prefill-delayer-forward-passes-buckets
        prefill-delayer-wait-seconds-buckets prompt-tokens-buckets show-time-cost
        tokenizer-metrics-allowed-custom-labels tokenizer-metrics-custom-labels-header trace-modules
        uvicorn-access-log-exclude-prefixes
    """),
    ("operational", _NETWORK, """
        disaggregation-bootstrap-port dist-init-addr enable-http-worker-reuseport enable-http2 enable-ssl-refresh
        encoder-bootstrap-port engine-info-bootstrap-port fastapi-root-path gated-launch-port grpc-mode grpc-port host
        http2-initial-connection-window-size http2-max-concurrent-streams nccl-port port smg-grpc-mode
        smg-http-sidecar-port ssl-ca-certs ssl-certfile ssl-keyfile ssl-keyfile-password
    """),
    ("operational", _SECRET, "admin-api-key api-key"),
    ("operational", _CLOCK, """
        dist-timeout elastic-ep-scale-timeout grpc-response-timeout-secs mm-per-request-timeout soft-watchdog-timeout
        watchdog-timeout weight-cache-timeout
    """),
    ("operational", _CHECK, "model-checksum"),
    ("operational", _STOP, "custom-sigquit-handler"),
    ("behaviour", _TEXT, """
        chat-template completion-template default-chat-template-kwargs hf-chat-template-name reasoning-parser
        tokenizer-backend tool-call-parser tool-server trust-request-chat-template
    """),
    ("behaviour", _ANSWER, """
        enable-response-store incremental-streaming-output return-input-ids return-output-ids stream-output
        stream-response-default-include-usage weight-version
    """),
    ("operational", _CARDS, "disaggregation-ib-device mooncake-ib-device"),
    ("behaviour", _REFUSED, """
        abort-on-priority-when-disabled allow-auto-truncate allowed-media-domains asr-max-buffer-seconds
        asr-max-concurrent-sessions max-queued-requests media-url-max-file-size-mb sampling-mask-max-tokens
    """),
    ("behaviour", _CHOICE, """
        constrained-json-disable-any-whitespace constrained-json-max-whitespace-cnt
        constrained-json-whitespace-pattern enable-strict-thinking enable-watermark grammar-backend
        preferred-sampling-params sampling-backend sampling-defaults watermark-config
    """),
    ("performance", _CAPACITY, """
        hicache-host-memory-fraction hicache-ratio hicache-size radix-eviction-policy radix-eviction-policy-config
        strip-thinking-cache
    """),
    ("performance", _WHEN, """
        hicache-storage-prefetch-policy hicache-storage-prefetch-retry-max-attempts
        hicache-storage-prefetch-retry-poll-interval hicache-write-policy
    """),
    ("performance", _STREAM, "batch-notify-size stream-interval"),
    ("performance", _WORKERS, """
        detokenizer-worker-num disable-tokenizer-batch-decode dynamic-batch-tokenizer-batch-size
        dynamic-batch-tokenizer-batch-timeout enable-dynamic-batch-tokenizer enable-tokenizer-batch-encode
        tokenizer-worker-num
    """),
    ("performance", _MEDIA, "mm-io-worker-num mm-max-concurrent-calls"),
    ("performance", _HOST, "enable-cudagraph-gc gc-threshold sleep-on-idle"),
    ("performance", _OUTLINES, "disable-outlines-disk-cache"),
    ("performance", _READ, """
        weight-loader-disable-mmap weight-loader-drop-cache-after-load weight-loader-prefetch-checkpoints
        weight-loader-prefetch-num-threads
    """),
)  # fmt: skip

_FACTORS: tuple[Group, ...] = (
    ("cache-identity", _PAGE_NAME, "served-model-name"),
    ("cache-identity", _EVENTS, "kv-events-config"),
    ("cache-identity", _SEED, "random-seed"),
    ("cache-identity", _UNPINNED, "config delete-ckpt-after-loading sidecar sidecar-args"),
    ("cache-identity", _BEFORE, "pre-warm-nccl skip-server-warmup warmups"),
    ("cache-identity", _GRAPH, """
        cuda-graph-backend-decode cuda-graph-backend-prefill cuda-graph-bs cuda-graph-bs-decode cuda-graph-bs-prefill
        cuda-graph-config cuda-graph-max-bs cuda-graph-max-bs-decode cuda-graph-max-bs-prefill
        cuda-graph-max-seq-len-prefill cuda-graph-prefill-max-context cuda-graph-tc-compiler debug-cuda-graph
        disable-cuda-graph disable-cuda-graph-padding disable-decode-cuda-graph disable-piecewise-cuda-graph
        disable-prefill-cuda-graph enable-breakable-cuda-graph enable-piecewise-cuda-graph enable-torch-compile
        enable-torch-compile-debug-mode enforce-piecewise-cuda-graph piecewise-cuda-graph-compiler
        piecewise-cuda-graph-max-tokens piecewise-cuda-graph-tokens torch-compile-max-bs
    """),
    ("cache-identity", _WHERE, "file-storage-path"),
    ("cache-identity", _PLUGIN, """
        flexkv-config-file hicache-storage-backend-extra-config hisparse-config lmcache-config-file
        unified-cache-external-linker-config
    """),
    ("cache-identity", _TIER, """
        disable-radix-cache enable-flexkv enable-hierarchical-cache enable-hisparse enable-kv-cache-sharding
        enable-linker-mla-dedup enable-lmcache enable-session-radix-cache enable-streaming-session
        enable-unified-cache-external-linker hicache-host-memory-mode hicache-io-backend hicache-mem-layout
        hicache-storage-backend radix-cache-backend unified-cache-external-linker-backend
    """),
    ("cache-identity", _SPECULATIVE, """
        decoupled-spec-bind-endpoint decoupled-spec-connect-endpoints decoupled-spec-rank decoupled-spec-role
        enable-multi-layer-eagle spec-trace-dir speculative-accept-threshold-acc speculative-accept-threshold-single
        speculative-adaptive speculative-adaptive-config speculative-algorithm speculative-attention-mode
        speculative-dflash-block-size speculative-dflash-draft-window-size speculative-domino-candidate-pool-size
        speculative-draft-attention-backend speculative-draft-kv-cache-dtype speculative-draft-load-format
        speculative-draft-model-path speculative-draft-model-quantization speculative-draft-model-revision
        speculative-draft-sink-size speculative-draft-window-size speculative-dsa-topk-backend
        speculative-dspark-align-verify-tokens-to-graph-tier speculative-dspark-block-size
        speculative-dspark-confidence-sts-path speculative-dspark-sps-table-path speculative-eagle-topk
        speculative-enable-w4a4-mxfp4-megamoe speculative-moe-a2a-backend speculative-moe-runner-backend
        speculative-ngram-branch-length speculative-ngram-capacity speculative-ngram-external-corpus-max-tokens
        speculative-ngram-external-corpus-path speculative-ngram-external-sam-budget speculative-ngram-match-type
        speculative-ngram-max-bfs-breadth speculative-ngram-max-match-window-size speculative-ngram-max-trie-depth
        speculative-ngram-min-bfs-breadth speculative-ngram-min-match-window-size speculative-num-draft-tokens
        speculative-num-steps speculative-skip-dp-mlp-sync speculative-token-map speculative-use-block-verification
        speculative-use-rejection-sampling uno-lora-path
    """),
    ("cache-identity", _LORA, """
        enable-lora enable-lora-overlap-loading experts-shared-outer-loras lora-backend lora-drain-wait-threshold
        lora-eviction-policy lora-paths lora-strict-loading lora-target-modules lora-use-virtual-experts
        max-loaded-loras max-lora-chunk-size max-lora-rank max-loras-per-batch
    """),
    ("cache-identity", _STATE, """
        disable-hybrid-swa-memory enable-decoder-swa-bounded-replay enable-encoder-swa-bounded-replay
        enable-gdn-replayssm-spec enable-int8-mamba-checkpoint enable-linear-replayssm enable-linear-replayssm-spec
        enable-mamba-cache-stochastic-rounding hybrid-kvcache-ratio int8-mamba-ckpt-size linear-attn-backend
        linear-attn-decode-backend linear-attn-prefill-backend linear-attn-verify-backend linear-replayssm-cache-len
        mamba-backend mamba-cache-philox-rounds mamba-full-memory-ratio mamba-max-states-per-path
        mamba-radix-cache-strategy mamba-scheduler-strategy mamba-ssm-dtype mamba-track-interval max-mamba-cache-size
        swa-full-tokens-ratio swa-prefix-tails
    """),
    ("cache-identity", _ELSEWHERE, """
        checkpoint-engine-wait-weights-before-ready disaggregation-decode-allocation-policy disaggregation-decode-dp
        disaggregation-decode-enable-fake-auto disaggregation-decode-enable-offload-kvcache
        disaggregation-decode-enable-radix-cache disaggregation-decode-extra-slots
        disaggregation-decode-host-receive-threshold disaggregation-decode-polling-interval
        disaggregation-decode-retraction-backup disaggregation-decode-tp disaggregation-enable-kv-checksum
        disaggregation-mode disaggregation-prefill-pp disaggregation-transfer-backend download-dir
        enable-adaptive-dispatch-to-encoder enable-elastic-expert-backup enable-pd-role-switch enable-pdmux
        encoder-only encoder-register-urls encoder-transfer-backend encoder-urls language-only modelexpress-config
        num-reserved-decode-tokens optimistic-prefill-attempts pdmux-config-path prefill-round-robin-balance
        remote-instance-weight-loader-backend remote-instance-weight-loader-seed-instance-ip
        remote-instance-weight-loader-seed-instance-service-port
        remote-instance-weight-loader-send-weights-group-ports
        remote-instance-weight-loader-start-seed-via-transfer-engine sm-group-num weight-cache-mode
        weight-cache-socket
    """),
    ("cache-identity", _IMAGES, """
        disable-fast-image-processor enable-broadcast-mm-inputs-process enable-mm-global-cache enable-multimodal
        enable-precise-embedding-interpolation enable-prefix-mm-cache image-processor-backend
        keep-mm-feature-on-device language-model-only limit-mm-data-per-request mm-attention-backend
        mm-enable-dp-encoder mm-feature-transport mm-global-cache-backend mm-preprocess-cache-size-mb
        mm-process-config mm-processor-worker-num trust-mm-content-hashes
    """),
    ("cache-identity", _TOKENIZER, "skip-tokenizer-init tokenizer-mode tokenizer-path"),
    ("cache-identity", _HOOK, """
        debug-tensor-dump-inject debug-tensor-dump-input-file debug-tensor-dump-layers debug-tensor-dump-output-folder
        enable-custom-logit-processor enable-expert-distribution-metrics enable-layerwise-nvtx-marker
        enable-nan-detection enable-profile-cuda-graph enable-return-aux-hidden-states enable-return-hidden-states
        enable-return-indexer-topk enable-return-routed-experts expert-balancedness-report-mode
        expert-distribution-recorder-buffer-size expert-distribution-recorder-mode forward-hooks kv-canary
        kv-canary-real-data kv-canary-sweep-interval mlx-enable-sampling msprobe-dump-config
        return-aux-hidden-state-layer-ids return-hidden-states-mode
    """),
    ("cache-identity", _OFFLOAD, """
        cpu-offload-gb enable-draft-weights-cpu-backup enable-memory-saver enable-paged-experts
        enable-weights-cpu-backup kt-cpuinfer kt-max-deferred-experts-per-token kt-method kt-num-gpu-experts
        kt-threadpool-count kt-weight-path offload-group-size offload-mode offload-num-in-group offload-prefetch-step
        paged-experts-num-resident ple-offload-backend ple-offload-dir ple-offload-embedding
    """),
    ("cache-identity", _SUMS, """
        boundary-reduction dcp-comm-backend disable-aiter-allreduce-fusion-in-decode
        disable-aiter-allreduce-fusion-in-prefill disable-attn-tp-gather disable-custom-all-reduce
        disable-flashinfer-cutlass-moe-fp4-allgather enable-aiter-allreduce-fusion enable-attn-tp-input-scattered
        enable-flashinfer-allreduce-fusion enable-fused-moe-sum-all-reduce enable-mscclpp enable-nccl-nvls
        enable-p2p-check enable-quant-communications enable-scattered-sconv enable-symm-mem enable-torch-symm-mem
        enable-tp-lm-head-all-to-all enforce-disable-flashinfer-allreduce-fusion flashinfer-a2a-dispatch-type
        flashinfer-allreduce-fusion-backend moe-a2a-backend
    """),
    ("cache-identity", _EXPERTS, """
        deepep-config deepep-dispatcher-output-dtype deepep-mode deepep-v2-mode disable-shared-experts-fusion
        elastic-ep-backend elastic-ep-initial-size elastic-ep-join-mode elastic-ep-join-rank-offset elastic-ep-rejoin
        enable-eplb enable-megamoe-for-layernorm-sp enable-shared-experts-attn-tp enable-w4a4-mxfp4-megamoe
        enable-waterfill enforce-shared-experts-fusion ep-dispatch-algorithm ep-num-redundant-experts eplb-algorithm
        eplb-min-rebalancing-utilization-threshold eplb-rebalance-layers-per-chunk eplb-rebalance-num-iterations
        expert-parallel-size flashinfer-mxfp4-moe-precision fuseep-mode init-expert-location max-ep-size
        moe-data-parallel-size moe-dense-tp-size moe-runner-backend shared-experts-tp-size
    """),
    ("cache-identity", _BATCH, """
        chunked-prefill-size default-priority-value disable-chunked-prefix-cache disable-overlap-schedule
        disable-priority-preemption dllm-algorithm dllm-algorithm-config dllm-fdfo enable-dynamic-chunking enable-mis
        enable-mixed-chunk enable-prefill-delayer enable-priority-scheduling enable-single-batch-overlap
        enable-two-batch-overlap load-snapshot-publish-interval max-prefill-tokens max-running-requests
        max-total-tokens mem-fraction-static min-free-slots-delay multi-item-scoring-delimiter
        num-continuous-decode-steps pp-async-batch-depth pp-max-micro-batch-size prefill-decode-interval
        prefill-decode-interval-min-bs prefill-delayer-max-delay-ms prefill-delayer-max-delay-passes
        prefill-delayer-queue-min-ratio prefill-delayer-token-usage-low-watermark prefill-max-requests
        prefill-only-disable-kv-cache priority-scheduling-preemption-threshold retraction-policy
        schedule-conservativeness schedule-low-priority-values-first schedule-policy scheduler-recv-interval
        tbo-token-distribution-threshold
    """),
    ("cache-identity", _SHAPE, """
        c128-page-size ds-channel-config-path ds-heavy-channel-num ds-heavy-channel-type ds-heavy-token-num
        ds-sparse-decode-threshold dtype enable-double-sparsity enable-page-major-kv-layout enable-unified-memory
        kv-cache-dtype page-size prefill-kv-cache-dequant-dtype qsa-indexer-dtype
    """),
    ("cache-identity", _KERNEL, """
        attention-backend bf16-gemm-backend decode-attention-backend disable-flashinfer-autotune dsa-decode-backend
        dsa-paged-mqa-logits-backend dsa-prefill-backend dsa-topk-backend dsa-triton-union dsv4-attn-backend
        dsv4-prefill-backend enable-amd-monokernel enable-deepseek-v4-fp4-indexer enable-deterministic-inference
        enable-dsa-fused-indexer enable-fp32-lm-head enable-fused-qk-norm-rope enable-lean-attention
        enable-nvidia-megakernel enable-tf32-matmul flashinfer-autotune-skip-ops flashinfer-mla-disable-ragged
        fp4-gemm-backend fp8-gemm-backend monokernel-backend nsa-decode-backend nsa-prefill-backend
        prefill-attention-backend triton-attention-num-kv-splits triton-attention-reduce-in-fp32
        triton-attention-split-tile-size
    """),
    ("cache-identity", _RANKS, """
        attention-context-parallel-size attn-dp-size cp-strategy data-parallel-size dcp-replicate-q-proj dcp-size
        dsa-prefill-cp-mode dwdp-size enable-cp-decode-attn-tp enable-dense-mlp-attn-tp enable-dp-attention
        enable-dp-attention-local-control-broadcast enable-dp-lm-head enable-dsa-cache-layer-split
        enable-dsa-prefill-context-parallel enable-layernorm-sp enable-nsa-prefill-context-parallel
        enable-prefill-context-parallel enable-prefill-cp load-balance-method nnodes node-rank nsa-prefill-cp-mode
        pipeline-parallel-size prefill-cp-mode tensor-parallel-size
    """),
    ("cache-identity", _MODEL, """
        context-length custom-weight-loader decrypted-config-file decrypted-draft-config-file is-embedding
        json-model-override-args load-format model-config-parser model-impl model-loader-extra-config model-path
        modelopt-checkpoint-restore-path modelopt-checkpoint-save-path modelopt-export-path modelopt-quant
        quantization quantization-param-path quantize-and-serve revision rl-on-policy-target rl-quant-profile
        startup-weight-load-mode torchao-config trust-remote-code
    """),
    ("cache-identity", _DEVICE, "base-gpu-id device gpu-id-step numa-node use-ray"),
)  # fmt: skip

ARGUMENTS: tuple[Group, ...] = (*_NEUTRAL, *_FACTORS)
