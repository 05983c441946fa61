#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "attention/api/problem.h"
#include "core/status.h"
#include "core/tensor.h"

namespace longca {

/// How the values of q and k are distributed; v and dout are always standard normal.
enum class InputStyle : std::uint8_t {
  normal,  ///< standard normal: every query attends to all keys alike
  /// A mixture that makes scores peaked. Every kTopicTokens neighbouring tokens are about one of
  /// kTopics topics, drawn for each KV head; a topic has a direction of signs ±1 in each KV head,
  /// and kTopicShift times it is added to what is drawn. With d = 128 the scores of tokens of one
  /// topic are 6.4 higher on average, and most of a query's probability lies in its own topic.
  clustered,
};
std::string_view to_string(InputStyle style);  ///< "normal", "clustered"
std::optional<InputStyle> parse_input_style(std::string_view text);
inline constexpr std::int64_t kTopicTokens = 200;  ///< no multiple of usual blocks
inline constexpr std::uint32_t kTopics = 32;
inline constexpr float kTopicShift = 0.75F;

/// `unsupported` but for the types that inputs are drawn in: float32 and bfloat16.
Support inputs_offered(DType dtype);

/// The values of one problem, in the memory of its device, rounded to the problem's dtype.
struct Inputs {
  Tensor q, k, v, dout;

  std::int64_t bytes() const { return q.bytes() + k.bytes() + v.bytes() + dout.bytes(); }
};

/// Which tensor a stream of random numbers belongs to.
enum class InputTensor : std::uint32_t { q, k, v, dout };

/// Elements that share one Philox stream: see draw_normal.
inline constexpr std::int64_t kInputChunk = 4096;

/// The float32 values of elements [chunk · kInputChunk, chunk · kInputChunk + values.size()) of a
/// tensor, numbered in memory order; at most kInputChunk of them. Element 4 i + j of the chunk
/// comes from word j of Philox4x32-10 at the counter {chunk, 2^31 + tensor, i, 0} under the key
/// `seed`: one word per value, by the inverse of the normal distribution's cumulative function,
/// relative error below 1e-6, |value| ≤ 6.4. Only integer operations and IEEE 754's float32 +, −,
/// ×, ÷, √ are used, none of them fused, so that every device can draw the same values to the bit.
void draw_normal(std::uint64_t seed, InputTensor tensor, std::int64_t chunk,
                 std::span<float> values);

/// Fills a contiguous float32 or bfloat16 tensor in memory of the device with some rows of one of
/// the tensors that make_inputs makes, whose heads and dim it has: those of `tokens`, which are
/// disjoint and ascend. Its further rows become zeros. Queued on the device's stream; what is drawn
/// does not depend on how many tokens the whole has, and other rows are not drawn. `heads_k` of a
/// clustered problem divides the tensor's heads.
/// Throws InputError for other dtypes.
void draw_rows(DeviceKind device, const TensorView& tensor, std::uint64_t seed, InputTensor id,
               std::span<const Range> tokens, InputStyle style = InputStyle::normal,
               std::int64_t heads_k = 1);

/// q [tokens_q, heads_q, dim], k and v [tokens_k, heads_k, dim], dout as q; float32 or bfloat16
/// (the float32 values rounded to nearest), in the memory of the problem's device and equal on
/// every device. Throws InputError for other dtypes.
Inputs make_inputs(const Problem& problem, std::uint64_t seed,
                   InputStyle style = InputStyle::normal);

}  // namespace longca
