#pragma once

#include <cstdint>

/// Between the program and the Python process that hosts it, in C for ctypes: Python loads
/// liblongca_host.so, which is the whole program without its `main`, passes it the callbacks below,
/// and runs the same worker loop as the program itself (host.py). No libpython is linked, so that
/// any Python works. host.py mirrors these structures and compares their sizes.
extern "C" {

struct LongcaProblem {
  std::int64_t tokens_q, tokens_k;
  std::int32_t heads_q, heads_k, head_dim;
  std::int32_t dtype;   ///< longca::DType: 0 float32, 1 bfloat16, 2 float16
  std::int32_t device;  ///< longca::DeviceKind: 0 cpu, 1 cuda
  std::int32_t backward;
  std::int32_t deterministic;  ///< gradients are to be equal to the bit from call to call
  std::int32_t sink;  ///< calls are given a logit per query head, and room for its gradient
  double scale;
  double softcap;          ///< 0: scores as they are
  std::int32_t value_dim;  ///< of v and o, up to head_dim, that of q and k
  std::int32_t unused;     ///< 0
};

/// [tokens, heads, dim]; strides count elements, the last dimension is contiguous.
struct LongcaTensor {
  void* data;
  std::int64_t tokens, heads, dim, token_stride, head_stride;
  std::int32_t dtype, device;
};

/// [heads, tokens] float32.
struct LongcaLse {
  void* data;
  std::int64_t heads, tokens, head_stride;
  std::int32_t device;
};

/// Null pointers in a call without sinks.
struct LongcaForward {
  LongcaTensor q, k, v, o;
  LongcaLse lse;
  const float* sink;  ///< [heads_q]
  void* stream;
};

struct LongcaBackward {
  LongcaTensor dout, q, k, v, o;
  LongcaLse lse;
  LongcaTensor dq, dk, dv;
  const float* sink;  ///< [heads_q]
  float* dsink;       ///< [heads_q]
  void* stream;
};

/// `kernel` is a kernel's name, `mask` a handle for longca_host_mask_*. Each callback answers
/// through longca_reply(reply, …); no answer means `ok`.
struct LongcaCallbacks {
  void (*supports)(void* reply, const char* kernel, const LongcaProblem* problem, const void* mask);
  /// Returns the plan's number, which the following callbacks take.
  std::int64_t (*plan)(void* reply, const char* kernel, const LongcaProblem* problem,
                       const void* mask);
  void (*forward)(void* reply, std::int64_t plan, const LongcaForward* arguments);
  void (*backward)(void* reply, std::int64_t plan, const LongcaBackward* arguments);
  /// Answers with longca_reply_note, and longca_reply_number for "workspace_bytes" and
  /// "compile_ms".
  void (*facts)(void* reply, std::int64_t plan);
  void (*release)(std::int64_t plan);
  /// Answers with the version of the package behind a kernel, as the note "version".
  void (*version)(void* reply, const char* kernel);
};

}  // extern "C"
