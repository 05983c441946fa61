// Compiled without contraction to fused multiply-adds (CMakeLists.txt): values are bitwise
// reproducible.
#include "attention/inputs/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "attention/inputs/normal.h"
#include "core/error.h"
#include "core/philox.h"
#include "core/thread_pool.h"

namespace longca {
namespace {

void store(std::span<const float> values, void* data, std::int64_t first, DType dtype) {
  with_type_of(dtype, [&]<typename T>(T) {
    std::ranges::transform(values, static_cast<T*>(data) + first,
                           [](float value) { return T(value); });
  });
}

/// Rows of the whole tensor that have one shape.
struct Piece {
  Range tokens;
  InputShape shape;
};

bool is_shaped(InputTensor id) {
  return id == InputTensor::q || id == InputTensor::k;
}

/// The part of `tokens` inside `bounds`.
Range cut(const Range& tokens, std::int64_t begin, std::int64_t end) {
  return {std::max(tokens.begin, begin), std::min(tokens.end, end)};
}

/// Keys of one document, for sink and rising inputs.
void add_keys(const Range& tokens, std::int64_t begin, std::int64_t end, InputStyle style,
              InputShape shape, std::vector<Piece>& pieces) {
  const double root = std::sqrt(static_cast<double>(shape.dim));
  const auto add = [&](const Range& range, const InputShape& of_range) {
    if (range.begin < range.end) pieces.push_back({range, of_range});
  };
  if (style == InputStyle::rising) {
    shape.slope = static_cast<float>(kRise / root / static_cast<double>(end - begin));
    shape.origin = begin;
    return add(cut(tokens, begin, end), shape);
  }
  InputShape sink = shape;
  sink.factor = 0;
  sink.shift = static_cast<float>(kSinkScore / root);
  add(cut(tokens, begin, std::min(begin + 1, end)), sink);
  shape.heads_k = 0;
  add(cut(tokens, begin + 1, end), shape);
}

/// Splits `tokens` by shape.
void add_pieces(const Range& tokens, InputTensor id, const InputLaw& law, InputShape shape,
                std::vector<Piece>& pieces) {
  const bool is_key = id == InputTensor::k;
  if (!is_shaped(id) || law.style == InputStyle::normal) return pieces.push_back({tokens, shape});
  if (law.style == InputStyle::peaked) {
    shape.factor = kPeakedFactor;
    return pieces.push_back({tokens, shape});
  }
  shape.heads_k = law.heads_k;
  shape.topics = law.style == InputStyle::clustered;
  shape.shift = shape.topics ? kTopicShift : 1;
  if (shape.topics || !is_key) return pieces.push_back({tokens, shape});
  shape.shift = 0;
  std::int64_t begin = 0;
  for (const std::int64_t length : law.documents) {
    add_keys(tokens, begin, begin + length, law.style, shape, pieces);
    begin += length;
  }
  LONGCA_CHECK(tokens.end <= begin, "documents of {} tokens have no token {}", begin,
               tokens.end - 1);
}

/// Consecutive elements of the whole tensor and their destination.
struct Run {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t to = 0;  ///< first element in the tensor that is filled
  InputShape shape;
};

std::vector<Run> runs_of(std::span<const Range> tokens, InputTensor id, const InputLaw& law,
                         const TensorView& tensor) {
  std::vector<Piece> pieces;
  for (const Range& range : tokens) {
    add_pieces(range, id, law, {.heads = tensor.heads, .dim = tensor.dim}, pieces);
  }
  const std::int64_t row = tensor.heads * tensor.dim;
  std::vector<Run> runs;
  std::int64_t to = 0;
  for (const Piece& piece : pieces) {
    runs.push_back({piece.tokens.begin * row, piece.tokens.size() * row, to, piece.shape});
    to += piece.tokens.size() * row;
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
      parts.push_back({first, count, run.to + done, run.shape});
      done += count;
    }
  }
  return parts;
}

/// Shapes the values of elements `first` and on.
void shape_values(std::span<float> values, std::int64_t first, PhiloxKey key,
                  const InputShape& shape) {
  for (std::int64_t i = 0; i < std::ssize(values);) {
    const std::int64_t row = (first + i) / shape.dim;
    const std::int64_t d = (first + i) % shape.dim;
    const PhiloxCounter signs =
        shape.heads_k == 0 ? PhiloxCounter{} : direction_signs(shape, key, row, d / kTopicSigns);
    const float along = along_direction(shape, row);
    const std::int64_t end = std::min((d / kTopicSigns + 1) * kTopicSigns, shape.dim);
    const std::int64_t count = std::min(end - d, std::ssize(values) - i);
    for (std::int64_t c = 0; c < count; ++c) {
      float& value = values[static_cast<std::size_t>(i + c)];
      value = shaped(value, shape, signs, along, d + c);
    }
    i += count;
  }
}

void draw_on_cpu(const TensorView& tensor, std::uint64_t seed, InputTensor id,
                 std::span<const Run> runs) {
  const std::vector<Run> parts = cut_at_chunks(runs);
  ThreadPool::global().parallel_for(std::ssize(parts), [&](std::int64_t i, int) {
    const Run& part = parts[static_cast<std::size_t>(i)];
    std::array<float, kInputChunk> buffer;
    const auto skipped = static_cast<std::size_t>(part.first % kInputChunk);
    const auto count = static_cast<std::size_t>(part.count);
    draw_normal(seed, id, part.first / kInputChunk, std::span(buffer).first(skipped + count));
    const std::span values = std::span(buffer).subspan(skipped, count);
    if (!part.shape.is_plain()) shape_values(values, part.first, philox_key(seed), part.shape);
    store(values, tensor.data, part.to, tensor.dtype);
  });
}

constexpr std::array<std::string_view, 5> kStyleNames = {"normal", "clustered", "peaked", "sink",
                                                         "rising"};

}  // namespace

std::span<const std::string_view> input_style_names() {
  return kStyleNames;
}

std::string_view to_string(InputStyle style) {
  return kStyleNames.at(static_cast<std::size_t>(style));
}

std::optional<InputStyle> parse_input_style(std::string_view text) {
  const auto found = std::ranges::find(kStyleNames, text);
  if (found == kStyleNames.end()) return std::nullopt;
  return static_cast<InputStyle>(found - kStyleNames.begin());
}

InputLaw input_law(const Problem& problem, InputStyle style,
                   std::span<const std::int64_t> documents) {
  return {style, problem.heads_k, documents.empty() ? std::span(&problem.tokens_k, 1) : documents};
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
               std::span<const Range> tokens, const InputLaw& law) {
  const std::int64_t row = tensor.heads * tensor.dim;
  const std::vector<Run> runs = runs_of(tokens, id, law, tensor);
  const std::int64_t drawn = runs.empty() ? 0 : runs.back().to + runs.back().count;
  const std::int64_t padding = tensor.tokens * row - drawn;
  LONGCA_CHECK(padding >= 0, "{} rows are drawn into a tensor of {}", drawn / row, tensor.tokens);
  const std::int64_t size = size_of(tensor.dtype);
  auto* data = static_cast<std::byte*>(tensor.data);
  if (padding > 0) Device::get(device).fill(data + drawn * size, 0, padding * size);
  if (device == DeviceKind::cpu) return draw_on_cpu(tensor, seed, id, runs);
#ifdef LONGCA_WITH_CUDA
  for (const Run& run : runs) {
    cuda_draw(data + run.to * size, tensor.dtype, run.first, run.count, seed, id, run.shape,
              Device::get(device).stream());
  }
#endif
}

Inputs make_inputs(const Problem& problem, std::uint64_t seed, InputStyle style,
                   std::span<const std::int64_t> documents) {
  LONGCA_CHECK(problem.value_dim() <= problem.head_dim, "v of dimension {}, q and k of {}",
               problem.value_dim(), problem.head_dim);
  MemoryTracker& memory = Device::get(problem.device).memory();
  const auto tensor = [&](std::int64_t tokens, int heads, int dim) {
    return Tensor(memory, problem.dtype, tokens, heads, dim);
  };
  Inputs inputs{tensor(problem.tokens_q, problem.heads_q, problem.head_dim),
                tensor(problem.tokens_k, problem.heads_k, problem.head_dim),
                tensor(problem.tokens_k, problem.heads_k, problem.value_dim()),
                tensor(problem.tokens_q, problem.heads_q, problem.value_dim()),
                {}};
  const Range queries{0, problem.tokens_q};
  const Range keys{0, problem.tokens_k};
  const InputLaw law = input_law(problem, style, documents);
  draw_rows(problem.device, inputs.q.view(), seed, InputTensor::q, {&queries, 1}, law);
  draw_rows(problem.device, inputs.k.view(), seed, InputTensor::k, {&keys, 1}, law);
  draw_rows(problem.device, inputs.v.view(), seed, InputTensor::v, {&keys, 1});
  draw_rows(problem.device, inputs.dout.view(), seed, InputTensor::dout, {&queries, 1});
  if (problem.sink) {
    inputs.sink = Tensor(memory, DType::float32, 1, problem.heads_q, 1);
    const Range all{0, 1};
    draw_rows(problem.device, inputs.sink.view(), seed, InputTensor::sink, {&all, 1});
  }
  return inputs;
}

}  // namespace longca
