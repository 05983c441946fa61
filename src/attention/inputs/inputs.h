#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "attention/api/problem.h"
#include "core/status.h"
#include "core/tensor.h"

namespace longca {

/// The distribution of q and k; v and dout are always standard normal.
enum class InputStyle : std::uint8_t {
  normal,  ///< standard normal: attention is nearly uniform
  /// A mixture with peaked scores. Every segment of kTopicTokens tokens has one of kTopics topics,
  /// drawn per KV head; kTopicShift times the topic's direction, a vector of ±1 per KV head, is
  /// added to the normal values. With d = 128, scores within a topic are 6.4 higher on average, and
  /// most of a query's probability lies in its own topic.
  clustered,
};
std::string_view to_string(InputStyle style);  ///< "normal", "clustered"
std::optional<InputStyle> parse_input_style(std::string_view text);
inline constexpr std::int64_t kTopicTokens = 200;  ///< not a multiple of usual block sizes
inline constexpr std::uint32_t kTopics = 32;
inline constexpr float kTopicShift = 0.75F;

/// ok for float32 and bfloat16, else `unsupported`.
Support inputs_offered(DType dtype);

/// The inputs of one problem in its device's memory, rounded to its dtype.
struct Inputs {
  Tensor q, k, v, dout;

  std::int64_t bytes() const { return q.bytes() + k.bytes() + v.bytes() + dout.bytes(); }
};

/// Identifies a tensor's stream of random numbers.
enum class InputTensor : std::uint32_t { q, k, v, dout };

/// Elements per Philox stream, see draw_normal.
inline constexpr std::int64_t kInputChunk = 4096;

/// Draws elements [chunk · kInputChunk, chunk · kInputChunk + values.size()) of a tensor in memory
/// order, at most kInputChunk, as float32. Element 4 i + j of the chunk is the normal quantile
/// (relative error below 1e-6, |value| ≤ 6.4) of word j of Philox4x32-10 with counter
/// {chunk, 2^31 + tensor, i, 0} and key `seed`. Uses only integer operations and unfused IEEE 754
/// float32 +, −, ×, ÷, √, so every device draws bitwise the same values.
void draw_normal(std::uint64_t seed, InputTensor tensor, std::int64_t chunk,
                 std::span<float> values);

/// Fills a contiguous tensor in device memory, float32 or bfloat16, with the rows `tokens`
/// (disjoint, ascending ranges) of tensor `id` of make_inputs, which has the same heads and dim;
/// remaining rows become 0. Values do not depend on the number of tokens of the whole tensor, of
/// which no other row is drawn. Asynchronous on the device's stream. For clustered inputs, the
/// problem's `heads_k` must divide the tensor's heads. Throws InputError for other dtypes.
void draw_rows(DeviceKind device, const TensorView& tensor, std::uint64_t seed, InputTensor id,
               std::span<const Range> tokens, InputStyle style = InputStyle::normal,
               std::int64_t heads_k = 1);

/// q and dout [tokens_q, heads_q, dim], k and v [tokens_k, heads_k, dim] in the memory of the
/// problem's device: float32, or bfloat16 rounded to nearest from it; bitwise equal on every
/// device. Throws InputError for other dtypes.
Inputs make_inputs(const Problem& problem, std::uint64_t seed,
                   InputStyle style = InputStyle::normal);

}  // namespace longca
