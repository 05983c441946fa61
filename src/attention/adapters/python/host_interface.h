#pragma once

#include <cstdint>

/// What the program and the Python that hosts it say to each other, in C so that ctypes can: a
/// Python process loads liblongca_host.so, which is the whole program without its `main`, hands it
/// the functions below, and runs the same worker loop as the program itself (host.py). No libpython
/// is linked, so that any Python serves. host.py mirrors these structures and compares their sizes.
extern "C" {

struct LongcaProblem {
  std::int64_t tokens_q, tokens_k;
  std::int32_t heads_q, heads_k, head_dim;
  std::int32_t dtype;   ///< longca::DType: 0 float32, 1 bfloat16, 2 float16
  std::int32_t device;  ///< longca::DeviceKind: 0 cpu, 1 cuda
  std::int32_t backward;
  std::int32_t deterministic;  ///< gradients are to be equal to the bit from call to call
  double scale;
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

struct LongcaForward {
  LongcaTensor q, k, v, o;
  LongcaLse lse;
  void* stream;
};

struct LongcaBackward {
  LongcaTensor dout, q, k, v, o;
  LongcaLse lse;
  LongcaTensor dq, dk, dv;
  void* stream;
};

/// The four calls of a kernel, what else is asked of it, and the end of a plan. `kernel` is its
/// name, `mask` a handle for longca_mask_*. Each answers through longca_reply(reply, …); silence is
/// `ok`.
struct LongcaCallbacks {
  void (*supports)(void* reply, const char* kernel, const LongcaProblem* problem, const void* mask);
  /// Returns the number that the following calls name the plan by.
  std::int64_t (*plan)(void* reply, const char* kernel, const LongcaProblem* problem,
                       const void* mask);
  void (*forward)(void* reply, std::int64_t plan, const LongcaForward* arguments);
  void (*backward)(void* reply, std::int64_t plan, const LongcaBackward* arguments);
  /// Answers with longca_reply_note, and longca_reply_number for "workspace_bytes" and
  /// "compile_ms".
  void (*facts)(void* reply, std::int64_t plan);
  void (*release)(std::int64_t plan);
  /// Of the package behind a kernel, as the note "version".
  void (*version)(void* reply, const char* kernel);
};

}  // extern "C"
