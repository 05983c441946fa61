#include "parallel/transport/peer/stream_values.h"

#include <cuda.h>

#include <algorithm>
#include <vector>

#include "core/cuda/error.h"

namespace longca {
namespace {

using BatchMemOp = decltype(&cuStreamBatchMemOp);

/// Looks the function up in the driver that the runtime has loaded: the program is not linked to
/// libcuda, so that it starts on machines without a driver.
BatchMemOp find_batch_mem_op() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
  const cudaError_t code = cudaGetDriverEntryPointByVersion("cuStreamBatchMemOp", &function, 12000,
                                                            cudaEnableDefault, &found);
#else
  const cudaError_t code =
      cudaGetDriverEntryPoint("cuStreamBatchMemOp", &function, cudaEnableDefault, &found);
#endif
  if (code == cudaSuccess && found == cudaDriverEntryPointSuccess) {
    return reinterpret_cast<BatchMemOp>(function);
  }
  cudaGetLastError();
  return nullptr;
}

BatchMemOp batch_mem_op() {
  static const BatchMemOp function = find_batch_mem_op();
  return function;
}

CUstreamBatchMemOpParams parameters(const StreamValue& value) {
  CUstreamBatchMemOpParams parameter{};
  const auto address = reinterpret_cast<CUdeviceptr>(value.word);
  if (value.what == StreamValue::What::write) {
    parameter.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    parameter.writeValue.address = address;
    parameter.writeValue.value = value.value;
    parameter.writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
  } else {
    parameter.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    parameter.waitValue.address = address;
    parameter.waitValue.value = value.value;
    parameter.waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
  }
  return parameter;
}

}  // namespace

Support stream_values_available() {
  if (batch_mem_op() != nullptr) return {};
  return Support::unavailable(
      "the NVIDIA driver lacks cuStreamBatchMemOp: update it to one of CUDA 12 or later");
}

void queue_values(std::span<const StreamValue> values, cudaStream_t stream) {
  constexpr std::size_t kMaxAtOnce = 128;  // the driver takes 256
  std::vector<CUstreamBatchMemOpParams> batch;
  while (!values.empty()) {
    const std::size_t count = std::min(values.size(), kMaxAtOnce);
    batch.clear();
    for (const StreamValue& value : values.first(count)) batch.push_back(parameters(value));
    // The driver's codes and the runtime's are the same numbers.
    LONGCA_CUDA(static_cast<cudaError_t>(
        batch_mem_op()(stream, static_cast<unsigned>(count), batch.data(), 0)));
    values = values.subspan(count);
  }
}

}  // namespace longca
