#include "parallel/transport/peer/stream_values.h"

#include <cuda.h>

#include <algorithm>
#include <vector>

#include "core/cuda/driver_function.h"
#include "core/cuda/error.h"

namespace longca {
namespace {

using BatchMemOp = decltype(&cuStreamBatchMemOp);

BatchMemOp batch_mem_op() {
  static const auto function =
      reinterpret_cast<BatchMemOp>(find_driver_function("cuStreamBatchMemOp"));
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
