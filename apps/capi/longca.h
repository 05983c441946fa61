#ifndef LONGCA_H
#define LONGCA_H

/// The C interface of longca: attention under any mask, with gradients, on the CPU or a GPU.
///
///   longca_mask* mask = NULL;
///   longca_plan* plan = NULL;
///   const int64_t cu_seqlens[] = {0, 300, 1024};
///   longca_problem problem = LONGCA_PROBLEM_INIT;
///   problem.heads_q = 8; problem.heads_k = 2; problem.head_dim = 128;
///   if (longca_mask_from_cu_seqlens(cu_seqlens, 3, 1, -1, -1, &mask) != LONGCA_OK ||
///       longca_plan_create(&problem, mask, &plan) != LONGCA_OK ||
///       longca_forward(plan, &arguments) != LONGCA_OK) {
///     fprintf(stderr, "%s\n", longca_last_error());
///   }
///
/// Shapes: q, dq [tokens_q, heads_q, head_dim]; k, dk [tokens_k, heads_k, head_dim]; v, dv
/// [tokens_k, heads_k, head_dim_v]; o, dout [tokens_q, heads_q, head_dim_v]; lse
/// [heads_q, tokens_q] float32, the natural logarithm. Query head h reads KV head
/// h · heads_k / heads_q. A query that sees no key gets o = 0, lse = −∞ (its sink, if there
/// are sinks) and gives no gradient.
/// Strides count elements; the last dimension is contiguous.
///
/// Every function may be called from any thread. Masks are immutable; calls on one plan wait for
/// each other. No exception leaves the library. A handle may be released as soon as no call uses
/// it, also where the GPU has not come to what a call has queued; a plan keeps what it needs of its
/// mask. Calls on plans leave the thread's CUDA device as it is. NULL for a required pointer is
/// LONGCA_INVALID_ARGUMENT, or 0 or NULL from a function that returns no status.

#include <stddef.h>
#include <stdint.h>

#define LONGCA_VERSION_MAJOR 0
#define LONGCA_VERSION_MINOR 2
#define LONGCA_VERSION_PATCH 0
/// Counts incompatible changes of this header. That a structure with a struct_size grows at its end
/// is none: struct_size says how much of it the caller knows, the rest gets its default. Nor is it
/// that a reserved member gets a name: it was to be 0, and 0 means what was before. The structures
/// of calls have no struct_size: a new member of theirs is an incompatible change.
#define LONGCA_ABI_VERSION 1

#if defined(__GNUC__)
#define LONGCA_API __attribute__((visibility("default")))
#else
#define LONGCA_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum longca_status {
  LONGCA_OK = 0,
  LONGCA_INVALID_ARGUMENT = 1,  ///< an argument, or the arguments together, make no sense
  LONGCA_UNSUPPORTED = 2,       ///< they do, but no kernel of this library takes them
  LONGCA_UNAVAILABLE = 3,       ///< this machine or build lacks a device
  LONGCA_OUT_OF_MEMORY = 4,
  LONGCA_FAILED = 5,  ///< a callback of the caller's, the device or the library itself failed
} longca_status;

/// "ok", "invalid argument", …; never NULL.
LONGCA_API const char* longca_status_name(longca_status status);
/// One sentence about the last call of this thread that failed; valid until the next one fails.
LONGCA_API const char* longca_last_error(void);

/// "0.2.0".
LONGCA_API const char* longca_version(void);
/// LONGCA_OK if a program compiled with `abi_version` can use this library. Pass
/// LONGCA_ABI_VERSION.
LONGCA_API longca_status longca_check_abi(int32_t abi_version);

// --- Masks -------------------------------------------------------------------------------------

/// Which queries may see which keys.
typedef struct longca_mask longca_mask;

typedef enum longca_slice_type {
  LONGCA_SLICE_FULL = 0,
  LONGCA_SLICE_CAUSAL = 1,          ///< k − k_end ≤ q − q_end: the bottom right corner
  LONGCA_SLICE_INVERSE_CAUSAL = 2,  ///< k − k_begin ≥ q − q_begin: the top left corner
  LONGCA_SLICE_BI_CAUSAL = 3,       ///< both
} longca_slice_type;

/// A rectangle of half-open ranges of tokens, cut as `type` says.
typedef struct longca_slice {
  int64_t q_begin, q_end, k_begin, k_end;
  int32_t type;      ///< longca_slice_type
  int32_t reserved;  ///< 0
} longca_slice;

/// Parameters of the named masks. Only those that a mask has may differ from
/// LONGCA_MASK_OPTIONS_INIT, but for seed and heads, which may be those of a caller's other masks.
typedef struct longca_mask_options {
  size_t struct_size;
  const char* lengths;              ///< a distribution of document lengths; NULL: prolong64k
  const int64_t* document_lengths;  ///< the documents themselves, of `tokens` together; or NULL
  size_t document_count;
  uint64_t seed;
  int64_t window;          ///< tokens; −1: 1024, or as many as global tokens if these are more
  int64_t block_tokens;    ///< block_causal_document; 0: 1024
  int64_t block;           ///< block-sparse masks: tokens of a block; 0: 128
  double density;          ///< block-sparse masks: share of the blocks kept; 0: 0.5
  int32_t heads_q;         ///< block-sparse masks: heads of the attention, at most 2^20
  int32_t heads_k;         ///< which have one list each
  int32_t per_query_head;  ///< one list per query head instead
  int32_t block_causal;    ///< no query sees a later key
} longca_mask_options;
#define LONGCA_MASK_OPTIONS_INIT \
  { sizeof(longca_mask_options), NULL, NULL, 0, 42, -1, 0, 0, 0.0, 1, 1, 0, 0 }

/// One of the fourteen masks: full, causal, sliding_window, sliding_window_causal, document,
/// causal_document, shared_question, global_sliding_window, causal_blockwise, prefix_lm_causal,
/// prefix_lm_document, block_causal_document, block_sparse, block_sparse_variable. The same
/// arguments give the same mask everywhere. `options` may be NULL.
LONGCA_API longca_status longca_mask_named(const char* name, int64_t tokens,
                                           const longca_mask_options* options, longca_mask** mask);
/// Documents [cu_seqlens[i], cu_seqlens[i + 1]) that see themselves only. They begin at 0, do not
/// fall and end at the number of tokens. A query sees at most window_left keys before its own and
/// window_right behind it; −1, or more than there are: all. `causal` excludes keys behind it.
LONGCA_API longca_status longca_mask_from_cu_seqlens(const int64_t* cu_seqlens, size_t count,
                                                     int32_t causal, int64_t window_left,
                                                     int64_t window_right, longca_mask** mask);
/// No two slices may allow the same cell.
LONGCA_API longca_status longca_mask_from_slices(int64_t tokens_q, int64_t tokens_k,
                                                 const longca_slice* slices, size_t count,
                                                 longca_mask** mask);

/// Kept key blocks per head and query block.
typedef struct longca_blocks {
  size_t struct_size;
  const int64_t* q_bounds;  ///< block i covers [q_bounds[i], q_bounds[i + 1]): from 0 to tokens_q
  size_t q_bound_count;
  const int64_t* k_bounds;
  size_t k_bound_count;
  int32_t heads;   ///< the number of KV heads or of query heads, at most 2^20, or 1
  int32_t causal;  ///< no query sees a later key
  /// Block i of head h keeps indices[offsets[h · blocks + i] … offsets[h · blocks + i + 1]),
  /// ascending and distinct: heads · (q_bound_count − 1) + 1 offsets.
  const int64_t* offsets;
  const int32_t* indices;
} longca_blocks;
LONGCA_API longca_status longca_mask_from_blocks(const longca_blocks* blocks, longca_mask** mask);

/// A mask as bytes that any process of this ABI version can read. Masks of the same slices,
/// documents and block lists have the same bytes. Writes to `bytes`, if it is not NULL, and sets
/// `size`; LONGCA_INVALID_ARGUMENT if that is more than `capacity`.
LONGCA_API longca_status longca_mask_write(const longca_mask* mask, void* bytes, size_t capacity,
                                           size_t* size);
LONGCA_API longca_status longca_mask_read(const void* bytes, size_t size, longca_mask** mask);

LONGCA_API int64_t longca_mask_tokens_q(const longca_mask* mask);
LONGCA_API int64_t longca_mask_tokens_k(const longca_mask* mask);
/// Distinct heads: 1 unless the mask has block lists.
LONGCA_API int32_t longca_mask_heads(const longca_mask* mask);
/// Allowed cells of a head, the mean over heads.
LONGCA_API double longca_mask_area(const longca_mask* mask);
/// Returns the number of slices and fills the first `capacity` of them. Of a mask with block lists
/// they are what its blocks lie in.
LONGCA_API size_t longca_mask_slices(const longca_mask* mask, longca_slice* slices,
                                     size_t capacity);
/// Returns the number of documents that the mask was drawn with, 0 if it has none, and fills the
/// first `capacity` of their lengths.
LONGCA_API size_t longca_mask_documents(const longca_mask* mask, int64_t* lengths, size_t capacity);
/// Fills `cells` [tokens_q, tokens_k], rows of bytes, with 0 and 1; `head` is below
/// longca_mask_heads. LONGCA_INVALID_ARGUMENT for another head, or more than 2^28 cells.
LONGCA_API longca_status longca_mask_dense(const longca_mask* mask, int32_t head, uint8_t* cells);
LONGCA_API void longca_mask_release(longca_mask* mask);

// --- Attention ---------------------------------------------------------------------------------

typedef enum longca_dtype {
  LONGCA_FLOAT32 = 0,
  LONGCA_BFLOAT16 = 1,
  LONGCA_FLOAT16 = 2,
} longca_dtype;

typedef enum longca_device { LONGCA_CPU = 0, LONGCA_CUDA = 1 } longca_device;

/// Where a plan's workspace comes from. Valid until the plan and its mask are released; may be
/// called from any thread.
typedef struct longca_allocator {
  void* context;
  /// `bytes` aligned to 256, in memory of the plan's device; NULL if there are not so many.
  void* (*allocate)(void* context, size_t bytes);
  void (*release)(void* context, void* memory, size_t bytes);
} longca_allocator;

typedef struct longca_problem {
  size_t struct_size;
  int32_t heads_q;
  int32_t heads_k;        ///< divides heads_q
  int32_t head_dim;       ///< of q and k, and of v where head_dim_v = 0
  int32_t dtype;          ///< longca_dtype, of all tensors
  int32_t device;         ///< longca_device: the GPU is number $LONGCA_DEVICE, else 0
  int32_t backward;       ///< longca_backward will be called too
  int32_t deterministic;  ///< gradients are equal to the bit from call to call
  double scale;           ///< of the scores, a normal float32; 0: 1/√head_dim
  const char* kernel;     ///< of `longca list kernels`; NULL: the one for the device and mask
  const longca_allocator* allocator;  ///< NULL: the library's own
  double softcap;                     ///< c: scores s become c · tanh(s / c); 0: as they are
  int32_t sink;        ///< 1: calls have a logit per query head in the softmax's denominator
  int32_t head_dim_v;  ///< of v and o, at most head_dim; 0: head_dim
} longca_problem;
#define LONGCA_PROBLEM_INIT                                                                       \
  {                                                                                               \
    sizeof(longca_problem), 1, 1, 128, LONGCA_FLOAT32, LONGCA_CPU, 0, 0, 0.0, NULL, NULL, 0.0, 0, \
        0                                                                                         \
  }

/// All preparation for one mask and shape: make it once, call it often.
typedef struct longca_plan longca_plan;
LONGCA_API longca_status longca_plan_create(const longca_problem* problem, const longca_mask* mask,
                                            longca_plan** plan);
/// The kernel that runs; valid as long as the plan.
LONGCA_API const char* longca_plan_kernel(const longca_plan* plan);
/// Bytes that the plan holds.
LONGCA_API int64_t longca_plan_workspace_bytes(const longca_plan* plan);
/// What a CUDA graph has captured of the plan keeps its memory for as long as the process.
LONGCA_API void longca_plan_release(longca_plan* plan);

/// [tokens, heads, dim], from an address that is a multiple of the element's bytes; where slice
/// computes (a GPU), rows begin at multiples of 16 bytes. Rows of written ones may not overlap.
typedef struct longca_tensor {
  void* data;
  int64_t tokens, heads, dim;
  int64_t token_stride, head_stride;
} longca_tensor;

/// [heads, tokens] float32. head_stride, in elements, is not read of one head.
typedef struct longca_lse {
  float* data;
  int64_t heads, tokens;
  int64_t head_stride;
} longca_lse;

typedef struct longca_forward_arguments {
  longca_tensor q, k, v;
  longca_tensor o;    ///< written
  longca_lse lse;     ///< written
  void* stream;       ///< a cudaStream_t; NULL on the CPU, where the call returns when all is done
  const float* sink;  ///< [heads_q], −∞: none; read only with problem.sink = 1
} longca_forward_arguments;
LONGCA_API longca_status longca_forward(longca_plan* plan,
                                        const longca_forward_arguments* arguments);

typedef struct longca_backward_arguments {
  longca_tensor dout, q, k, v, o;
  longca_lse lse;
  longca_tensor dq, dk, dv;  ///< written
  void* stream;
  const float* sink;  ///< [heads_q]; both read only with problem.sink = 1
  float* dsink;       ///< [heads_q], written
} longca_backward_arguments;
/// o and lse are those of a forward call with the same q, k and v. On a GPU all calls of a plan go
/// to one stream at a time.
LONGCA_API longca_status longca_backward(longca_plan* plan,
                                         const longca_backward_arguments* arguments);

/// What a DLPack capsule "dltensor" or, from DLPack 1.0 on, "dltensor_versioned" holds, as dlpack.h
/// declares it.
struct DLManagedTensor;
struct DLManagedTensorVersioned;

/// A tensor of another library as one of a call: where it lies, without a copy; it stays the
/// caller's to keep and to free. `from` is [tokens, heads, dim] with strides of at least 0, the
/// last 1, of the problem's dtype, on its device. LONGCA_INVALID_ARGUMENT says what does not fit.
LONGCA_API longca_status longca_tensor_from_dlpack(const struct DLManagedTensor* from,
                                                   const longca_problem* problem,
                                                   longca_tensor* tensor);
/// The same of a versioned one. `written`: calls write to it (o, dq, dk, dv), so that a read-only
/// one is refused. LONGCA_UNSUPPORTED for a major version other than 1, of which nothing else is
/// read.
LONGCA_API longca_status longca_tensor_from_dlpack_versioned(
    const struct DLManagedTensorVersioned* from, const longca_problem* problem, int32_t written,
    longca_tensor* tensor);
/// The same for lse: [heads, tokens] float32.
LONGCA_API longca_status longca_lse_from_dlpack(const struct DLManagedTensor* from,
                                                const longca_problem* problem, longca_lse* lse);
LONGCA_API longca_status
longca_lse_from_dlpack_versioned(const struct DLManagedTensorVersioned* from,
                                 const longca_problem* problem, int32_t written, longca_lse* lse);

// --- Context parallelism: ranks that share the tokens of a sequence -----------------------------

/// Which tokens a rank owns, for a mask and a scheme.
typedef struct longca_partition longca_partition;

typedef struct longca_partition_options {
  size_t struct_size;
  int32_t rank;        ///< 0 to ranks − 1
  int32_t ranks;       ///< 1 to 65536
  const char* scheme;  ///< ulysses, ring_p2p, ring_allgather, usp, loongtrain, magi; NULL: magi
  const char* shard;  ///< contiguous, zigzag, document_zigzag, …; NULL: what suits the scheme best
  int32_t factor;     ///< ranks that share heads in usp and loongtrain; 0: the scheme's choice
  int32_t ranks_per_node;  ///< consecutive ranks on one host, at least 1
  int32_t heads_q;         ///< the attention's shape, by which work is weighed
  int32_t heads_k;
  int32_t head_dim;
  int32_t device;    ///< what ranks compute on, by which it is weighed too
  int32_t reserved;  ///< 0
} longca_partition_options;
#define LONGCA_PARTITION_OPTIONS_INIT \
  { sizeof(longca_partition_options), 0, 1, NULL, NULL, 0, 8, 64, 8, 128, LONGCA_CPU, 0 }

/// The same arguments give matching partitions on all ranks, without communication.
LONGCA_API longca_status longca_partition_create(const longca_partition_options* options,
                                                 const longca_mask* mask,
                                                 longca_partition** partition);
/// Returns the number of ranges of tokens that the rank owns, ascending, and fills the first
/// `capacity` of them: [ranges[2 i], ranges[2 i + 1]).
LONGCA_API size_t longca_partition_ranges(const longca_partition* partition, int64_t* ranges,
                                          size_t capacity);
/// The ranges of any rank: sets `count` to their number and fills the first `capacity` of them.
LONGCA_API longca_status longca_partition_ranges_of(const longca_partition* partition, int32_t rank,
                                                    int64_t* ranges, size_t capacity,
                                                    size_t* count);
LONGCA_API void longca_partition_release(longca_partition* partition);

typedef struct longca_message {
  int32_t peer;  ///< the other rank
  int32_t reserved;
  void* data;
  int64_t bytes;
} longca_message;

/// What moves messages between the ranks. Between two ranks, the n-th message that one sends is the
/// n-th that the other receives. Functions return 0, or else the call that needs them fails.
typedef struct longca_transport {
  void* context;
  /// Starts to receive and to send, without waiting. A group has the same messages each time, and
  /// is not started again before it is finished.
  int32_t (*start)(void* context, int64_t group, const longca_message* receives,
                   size_t receive_count, const longca_message* sends, size_t send_count);
  /// Waits for all messages of the group.
  int32_t (*finish)(void* context, int64_t group);
} longca_transport;

/// A rank's part of an attention. All ranks make the same calls in the same order.
typedef struct longca_rank_plan longca_rank_plan;
/// On CPUs: `problem.device` is LONGCA_CPU; the allocator is not used. LONGCA_UNSUPPORTED for a v
/// of another dimension than q and k.
LONGCA_API longca_status longca_rank_plan_create(const longca_partition* partition,
                                                 const longca_problem* problem,
                                                 const longca_transport* transport,
                                                 longca_rank_plan** plan);

/// The GPUs of the ranks, one each, connected: made once, for all plans of these ranks, 1 to 65536.
typedef struct longca_gpu_group longca_gpu_group;
/// `transport` moves small messages between the hosts while something is created, one message at a
/// time, of any content, as group 0; it stays callable as long as the group. `name`: "peer", copies
/// between the GPUs of one host; "nccl"; NULL: peer where the GPUs reach each other, else nccl.
/// Every rank calls it, from one thread at a time, as all other calls on this group and its plans
/// must be, except longca_gpu_group_transport and longca_rank_plan_release.
LONGCA_API longca_status longca_gpu_group_create(int32_t rank, int32_t ranks,
                                                 const longca_transport* transport,
                                                 const char* name, longca_gpu_group** group);
/// "peer" or "nccl"; valid as long as the group.
LONGCA_API const char* longca_gpu_group_transport(const longca_gpu_group* group);
/// After all of its plans.
LONGCA_API void longca_gpu_group_release(longca_gpu_group* group);

/// On GPUs: `problem.device` is LONGCA_CUDA; the allocator is not used. Calls queue their work on
/// their stream and return; state and tensors are in memory of the rank's GPU.
LONGCA_API longca_status longca_rank_plan_create_on_gpus(const longca_partition* partition,
                                                         const longca_problem* problem,
                                                         longca_gpu_group* group,
                                                         longca_rank_plan** plan);
/// Bytes of what a backward call needs of its forward call besides o.
LONGCA_API int64_t longca_rank_plan_state_bytes(const longca_rank_plan* plan);
LONGCA_API void longca_rank_plan_release(longca_rank_plan* plan);

/// Tensors hold the rank's own tokens, all heads; lse is not used. Sinks are the same on all ranks,
/// and dsink gets the rank's part of a sum over ranks. `state`, longca_rank_plan_state_bytes of
/// them at a multiple of 4, in the host's or the rank's GPU's memory, gets what the backward call
/// needs; NULL if there will be none. After a call that failed amid its pass, whatever its status,
/// the plan takes no other.
LONGCA_API longca_status longca_rank_forward(longca_rank_plan* plan,
                                             const longca_forward_arguments* arguments,
                                             void* state);
/// Of the forward call whose inputs, o and state are given; other calls may come in between.
LONGCA_API longca_status longca_rank_backward(longca_rank_plan* plan,
                                              const longca_backward_arguments* arguments,
                                              const void* state);

#ifdef __cplusplus
}
#endif

#endif
