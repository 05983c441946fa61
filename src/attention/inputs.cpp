// Compiled without contraction into fused multiply-adds (CMakeLists.txt): the values are part of
// what the program promises.
#include "attention/inputs.h"

#include <algorithm>
#include <array>

#include "attention/normal.h"
#include "core/error.h"
#include "core/philox.h"
#include "core/thread_pool.h"
#ifdef LONGCA_WITH_CUDA
#include "attention/cuda/inputs.h"
#endif

namespace longca {
namespace {

void store(std::span<const float> values, void* data, std::int64_t first, DType dtype) {
  if (dtype == DType::float32) {
    std::ranges::copy(values, static_cast<float*>(data) + first);
  } else {
    std::ranges::transform(values, static_cast<BFloat16*>(data) + first,
                           [](float value) { return BFloat16(value); });
  }
}

void fill_on_cpu(const TensorView& tensor, std::uint64_t seed, InputTensor id) {
  const std::int64_t elements = tensor.tokens * tensor.heads * tensor.dim;
  const std::int64_t chunks = (elements + kInputChunk - 1) / kInputChunk;
  ThreadPool::global().parallel_for(chunks, [&](std::int64_t chunk, int) {
    std::array<float, kInputChunk> buffer;
    const std::int64_t first = chunk * kInputChunk;
    const auto count = static_cast<std::size_t>(std::min(kInputChunk, elements - first));
    const std::span values = std::span(buffer).first(count);
    draw_normal(seed, id, chunk, values);
    store(values, tensor.data, first, tensor.dtype);
  });
}

void fill(DeviceKind device, const TensorView& tensor, std::uint64_t seed, InputTensor id) {
  if (device == DeviceKind::cpu) return fill_on_cpu(tensor, seed, id);
#ifdef LONGCA_WITH_CUDA
  cuda_draw_normal(tensor, seed, id, Device::get(device).stream());
#endif
}

}  // namespace

void draw_normal(std::uint64_t seed, InputTensor tensor, std::int64_t chunk,
                 std::span<float> values) {
  LONGCA_CHECK(values.size() <= kInputChunk, "{} values of one chunk", values.size());
  LONGCA_CHECK(chunk >= 0 && chunk < (std::int64_t{1} << 32), "chunk {}", chunk);
  std::array<std::uint32_t, kInputChunk> buffer;
  const std::span words = std::span(buffer).first(values.size());
  philox_fill(static_cast<std::uint32_t>(chunk), kInputDomain + static_cast<std::uint32_t>(tensor),
              philox_key(seed), words);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = normal_quantile(words[i]);
}

Inputs make_inputs(const Problem& problem, std::uint64_t seed) {
  if (problem.dtype != DType::float32 && problem.dtype != DType::bfloat16) {
    throw_input_error("inputs of dtype {} are not offered, only float32 and bfloat16",
                      to_string(problem.dtype));
  }
  MemoryTracker& memory = Device::get(problem.device).memory();
  const auto tensor = [&](std::int64_t tokens, int heads) {
    return Tensor(memory, problem.dtype, tokens, heads, problem.head_dim);
  };
  Inputs inputs{
      tensor(problem.tokens_q, problem.heads_q), tensor(problem.tokens_k, problem.heads_k),
      tensor(problem.tokens_k, problem.heads_k), tensor(problem.tokens_q, problem.heads_q)};
  fill(problem.device, inputs.q.view(), seed, InputTensor::q);
  fill(problem.device, inputs.k.view(), seed, InputTensor::k);
  fill(problem.device, inputs.v.view(), seed, InputTensor::v);
  fill(problem.device, inputs.dout.view(), seed, InputTensor::dout);
  return inputs;
}

}  // namespace longca
