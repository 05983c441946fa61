// Compiled without contraction to fused multiply-adds (CMakeLists.txt): values are bitwise
// reproducible.
#include "attention/inputs/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "attention/inputs/normal.h"
#include "core/error.h"
#include "core/philox.h"
#include "core/thread_pool.h"

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

void check_dtype(DType dtype) {
  if (Support offered = inputs_offered(dtype); !offered.ok()) throw InputError(offered.reason);
}

/// Consecutive elements of the whole tensor and their destination.
struct Run {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t to = 0;  ///< first element in the tensor that is filled
};

std::vector<Run> runs_of(std::span<const Range> tokens, std::int64_t row) {
  std::vector<Run> runs;
  std::int64_t to = 0;
  for (const Range& range : tokens) {
    runs.push_back({range.begin * row, range.size() * row, to});
    to += range.size() * row;
  }
  return runs;
}

/// Splits runs at chunk boundaries.
std::vector<Run> cut_at_chunks(std::span<const Run> runs) {
  std::vector<Run> parts;
  for (const Run& run : runs) {
    for (std::int64_t done = 0; done < run.count;) {
      const std::int64_t first = run.first + done;
      const std::int64_t count = std::min(kInputChunk - first % kInputChunk, run.count - done);
      parts.push_back({first, count, run.to + done});
      done += count;
    }
  }
  return parts;
}

/// Adds the topics' shifts to the values of elements `first` and on.
void add_topics(std::span<float> values, std::int64_t first, PhiloxKey key,
                const TensorView& tensor, std::int64_t heads_k) {
  const std::int64_t dim = tensor.dim;
  for (std::int64_t i = 0; i < std::ssize(values);) {
    const std::int64_t row = (first + i) / dim;
    const std::int64_t d = (first + i) % dim;
    const std::int64_t head_k = row % tensor.heads * heads_k / tensor.heads;
    const auto signs = topic_signs(key, row / tensor.heads, head_k, d / kTopicSigns);
    const std::int64_t end = std::min((d / kTopicSigns + 1) * kTopicSigns, dim);
    const std::int64_t count = std::min(end - d, std::ssize(values) - i);
    for (std::int64_t c = 0; c < count; ++c) {
      values[static_cast<std::size_t>(i + c)] += topic_shift(signs, d + c);
    }
    i += count;
  }
}

/// heads_k if the tensor's values are shifted by topics, else 0.
std::int64_t shifted_heads(InputTensor id, InputStyle style, std::int64_t heads_k) {
  const bool shifted =
      style == InputStyle::clustered && (id == InputTensor::q || id == InputTensor::k);
  return shifted ? heads_k : 0;
}

void draw_on_cpu(const TensorView& tensor, std::uint64_t seed, InputTensor id,
                 std::span<const Run> runs, std::int64_t shifted) {
  const std::vector<Run> parts = cut_at_chunks(runs);
  ThreadPool::global().parallel_for(std::ssize(parts), [&](std::int64_t i, int) {
    const Run& part = parts[static_cast<std::size_t>(i)];
    std::array<float, kInputChunk> buffer;
    const auto skipped = static_cast<std::size_t>(part.first % kInputChunk);
    const auto count = static_cast<std::size_t>(part.count);
    draw_normal(seed, id, part.first / kInputChunk, std::span(buffer).first(skipped + count));
    const std::span values = std::span(buffer).subspan(skipped, count);
    if (shifted > 0) add_topics(values, part.first, philox_key(seed), tensor, shifted);
    store(values, tensor.data, part.to, tensor.dtype);
  });
}

}  // namespace

Support inputs_offered(DType dtype) {
  if (dtype == DType::float32 || dtype == DType::bfloat16) return {};
  return Support::unsupported(fmt::format(
      "inputs of dtype {} are not offered, only float32 and bfloat16", to_string(dtype)));
}

std::string_view to_string(InputStyle style) {
  return style == InputStyle::normal ? "normal" : "clustered";
}

std::optional<InputStyle> parse_input_style(std::string_view text) {
  if (text == "normal") return InputStyle::normal;
  if (text == "clustered") return InputStyle::clustered;
  return std::nullopt;
}

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

void draw_rows(DeviceKind device, const TensorView& tensor, std::uint64_t seed, InputTensor id,
               std::span<const Range> tokens, InputStyle style, std::int64_t heads_k) {
  check_dtype(tensor.dtype);
  const std::int64_t row = tensor.heads * tensor.dim;
  const std::vector<Run> runs = runs_of(tokens, row);
  const std::int64_t drawn = runs.empty() ? 0 : runs.back().to + runs.back().count;
  const std::int64_t padding = tensor.tokens * row - drawn;
  LONGCA_CHECK(padding >= 0, "{} rows are drawn into a tensor of {}", drawn / row, tensor.tokens);
  const std::int64_t size = size_of(tensor.dtype);
  auto* data = static_cast<std::byte*>(tensor.data);
  if (padding > 0) Device::get(device).fill(data + drawn * size, 0, padding * size);
  const std::int64_t shifted = shifted_heads(id, style, heads_k);
  if (device == DeviceKind::cpu) return draw_on_cpu(tensor, seed, id, runs, shifted);
#ifdef LONGCA_WITH_CUDA
  for (const Run& run : runs) {
    cuda_draw_normal(data + run.to * size, tensor.dtype, run.first, run.count, seed, id,
                     {tensor.heads, tensor.dim, shifted}, Device::get(device).stream());
  }
#endif
}

Inputs make_inputs(const Problem& problem, std::uint64_t seed, InputStyle style) {
  check_dtype(problem.dtype);
  MemoryTracker& memory = Device::get(problem.device).memory();
  const auto tensor = [&](std::int64_t tokens, int heads) {
    return Tensor(memory, problem.dtype, tokens, heads, problem.head_dim);
  };
  Inputs inputs{
      tensor(problem.tokens_q, problem.heads_q), tensor(problem.tokens_k, problem.heads_k),
      tensor(problem.tokens_k, problem.heads_k), tensor(problem.tokens_q, problem.heads_q)};
  const Range queries{0, problem.tokens_q};
  const Range keys{0, problem.tokens_k};
  draw_rows(problem.device, inputs.q.view(), seed, InputTensor::q, {&queries, 1}, style,
            problem.heads_k);
  draw_rows(problem.device, inputs.k.view(), seed, InputTensor::k, {&keys, 1}, style,
            problem.heads_k);
  draw_rows(problem.device, inputs.v.view(), seed, InputTensor::v, {&keys, 1});
  draw_rows(problem.device, inputs.dout.view(), seed, InputTensor::dout, {&queries, 1});
  return inputs;
}

}  // namespace longca
