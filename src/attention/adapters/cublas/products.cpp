#include "attention/adapters/cublas/products.h"

#include <fmt/format.h>

#include <stdexcept>
#include <string>

#include "attention/adapters/cublas/library.h"
#include "core/device.h"

namespace longca::naive {
namespace {

/// NVIDIA's recommendation for Hopper; older architectures need less.
constexpr std::int64_t kWorkspaceBytes = std::int64_t{32} << 20;

void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error(
      fmt::format("{} failed: {}", call, cublas_library().status_string(status)));
}

cublasHandle_t cublas_handle() {
  static const cublasHandle_t handle = [] {
    cublasHandle_t made = nullptr;
    check(cublas_library().create(&made), "cublasCreate");
    return made;
  }();
  return handle;
}

cudaDataType_t cuda_type(DType dtype) {
  if (dtype == DType::float32) return CUDA_R_32F;
  return dtype == DType::float16 ? CUDA_R_16F : CUDA_R_16BF;
}

}  // namespace

/// A strided batch of column-major matrices.
struct Products::Matrix {
  const void* data = nullptr;
  DType dtype = DType::float32;
  std::int64_t column_stride = 0;
  std::int64_t batch_stride = 0;
  cublasOperation_t operation = CUBLAS_OP_N;

  /// Heads first, first + step, … of a tensor; columns are tokens.
  static Matrix of(const ConstTensorView& tensor, std::int64_t first, std::int64_t step,
                   cublasOperation_t operation = CUBLAS_OP_N) {
    return {
        static_cast<const char*>(tensor.data) + first * tensor.head_stride * size_of(tensor.dtype),
        tensor.dtype, tensor.token_stride, step * tensor.head_stride, operation};
  }
  /// Likewise of scores stored as `dtype`; columns are queries.
  static Matrix of(const Scores& scores, DType dtype, std::int64_t first, std::int64_t step,
                   cublasOperation_t operation = CUBLAS_OP_N) {
    const std::int64_t per_float = 4 / size_of(dtype);
    const std::int64_t head = scores.tokens_q * scores.pitch;
    return {scores.data + first * head, dtype, scores.pitch * per_float, step * head * per_float,
            operation};
  }
};

/// c[m, n] = a[m, k] · b[k, n] (+ c).
struct Products::Product {
  Matrix a, b, c;
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t batch = 1;
  bool added = false;
};

Products::Products() : workspace_(Device::get(DeviceKind::cuda).memory(), kWorkspaceBytes) {
  cublas_handle();  // created while planning, not in the first call
}

void Products::multiply(const Product& p, cudaStream_t stream) {
  if (p.m == 0 || p.n == 0) return;
  const CublasLibrary& cublas = cublas_library();
  const cublasHandle_t handle = cublas_handle();
  check(cublas.set_stream(handle, stream), "cublasSetStream");
  check(
      cublas.set_workspace(handle, workspace_.data(), static_cast<std::size_t>(workspace_.bytes())),
      "cublasSetWorkspace");
  const float one = 1;
  const float beta = p.added ? 1 : 0;
  // Pedantic: no reduced precision for float32, regardless of cuBLAS's environment variables.
  const auto compute =
      p.a.dtype == DType::float32 ? CUBLAS_COMPUTE_32F_PEDANTIC : CUBLAS_COMPUTE_32F;
  check(
      cublas.gemm_strided_batched_ex(
          handle, p.a.operation, p.b.operation, p.m, p.n, p.k, &one, p.a.data, cuda_type(p.a.dtype),
          p.a.column_stride, p.a.batch_stride, p.b.data, cuda_type(p.b.dtype), p.b.column_stride,
          p.b.batch_stride, &beta, const_cast<void*>(p.c.data), cuda_type(p.c.dtype),
          p.c.column_stride, p.c.batch_stride, p.batch, compute, CUBLAS_GEMM_DEFAULT),
      "cublasGemmStridedBatchedEx");
}

// A batch is the i-th query head of every group, so that the strides between query heads and
// between KV heads are constant.

void Products::scores(const ConstTensorView& a, const ConstTensorView& b, const Scores& out,
                      cudaStream_t stream) {
  const std::int64_t group = a.heads / b.heads;
  for (std::int64_t i = 0; i < group; ++i) {
    multiply({.a = Matrix::of(b, 0, 1, CUBLAS_OP_T),
              .b = Matrix::of(a, i, group),
              .c = Matrix::of(out, DType::float32, i, group),
              .m = out.tokens_k,
              .n = out.tokens_q,
              .k = a.dim,
              .batch = b.heads},
             stream);
  }
}

void Products::rows(const Scores& weights, const ConstTensorView& b, const TensorView& out,
                    bool added, cudaStream_t stream) {
  const std::int64_t group = out.heads / b.heads;
  for (std::int64_t i = 0; i < group; ++i) {
    multiply({.a = Matrix::of(b, 0, 1),
              .b = Matrix::of(weights, b.dtype, i, group),
              .c = Matrix::of(out, i, group),
              .m = out.dim,
              .n = weights.tokens_q,
              .k = weights.tokens_k,
              .batch = b.heads,
              .added = added},
             stream);
  }
}

void Products::columns(const Scores& weights, const ConstTensorView& a, const TensorView& out,
                       bool added, cudaStream_t stream) {
  const std::int64_t group = a.heads / out.heads;
  for (std::int64_t i = 0; i < group; ++i) {
    multiply({.a = Matrix::of(a, i, group),
              .b = Matrix::of(weights, a.dtype, i, group, CUBLAS_OP_T),
              .c = Matrix::of(out, 0, 1),
              .m = out.dim,
              .n = weights.tokens_k,
              .k = weights.tokens_q,
              .batch = out.heads,
              .added = added || i > 0},
             stream);
  }
}

}  // namespace longca::naive
