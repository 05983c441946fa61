#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "attention/api/problem.h"
#include "core/status.h"
#include "core/tensor.h"

namespace longca {

/// The distribution of q and k; v and dout are always standard normal. With n a tensor's standard
/// normal values, u(h) a direction of ±1 per KV head h and t a token's place in its document, which
/// has `length` tokens (docs/guide/metrics.md, Inputs):
enum class InputStyle : std::uint8_t {
  normal,  ///< n: attention is nearly uniform
  /// n + kTopicShift · u: a mixture with peaked scores. Every segment of kTopicTokens tokens has
  /// one of kTopics topics, drawn per KV head; u is the topic's direction. With d = 128, scores
  /// within a topic are 6.4 higher on average, and most of a query's probability lies in its own
  /// topic.
  clustered,
  peaked,  ///< kPeakedFactor · n: scores have a standard deviation of 9
  /// q = n + u, k = n but kSinkScore / √d · u for the first key of every document: its score is
  /// kSinkScore higher than the others' on average.
  sink,
  /// q = n + u, k = n + kRise / √d · t / length · u: scores rise along the keys of a document, by
  /// kRise on average.
  rising,
};
std::string_view to_string(InputStyle style);  ///< "normal", "clustered", …
std::optional<InputStyle> parse_input_style(std::string_view text);
std::span<const std::string_view> input_style_names();  ///< in the order of InputStyle
inline constexpr std::int64_t kTopicTokens = 200;       ///< not a multiple of usual block sizes
inline constexpr std::uint32_t kTopics = 32;
inline constexpr float kTopicShift = 0.75F;
inline constexpr float kPeakedFactor = 3.0F;
/// The other keys weigh e each on average: the sink has 89 % of a query's probability at 1K keys,
/// 50 % at 8K, 20 % at 32K. Far above, a float32 sum of a row would drop the other keys one by one.
inline constexpr double kSinkScore = 10.0;
/// A row's probabilities lie far above what float32 flushes to 0.
inline constexpr double kRise = 32.0;

/// What the values of a tensor depend on besides its seed.
struct InputLaw {
  InputStyle style = InputStyle::normal;
  /// KV heads of the problem, a divisor of the tensor's heads.
  std::int64_t heads_k = 1;
  /// Lengths of the documents, from token 0 on; one where the mask has none. Of sink and rising
  /// inputs, whose every token lies in one of them.
  std::span<const std::int64_t> documents = {};
};
/// Of a problem's tensors; no `documents`: one of all keys. Refers to `problem` and `documents`.
InputLaw input_law(const Problem& problem, InputStyle style,
                   std::span<const std::int64_t> documents);

/// The inputs of one problem in its device's memory, rounded to its dtype.
struct Inputs {
  Tensor q, k, v, dout;
  Tensor sink;  ///< [1, heads_q, 1] float32, standard normal; empty without sinks

  /// [heads_q] float32, or null.
  const float* sink_logits() const { return static_cast<const float*>(sink.view().data); }
  std::int64_t bytes() const {
    return q.bytes() + k.bytes() + v.bytes() + dout.bytes() + sink.bytes();
  }
};

/// Identifies a tensor's stream of random numbers.
enum class InputTensor : std::uint32_t { q, k, v, dout, sink };

/// Elements per Philox stream, see draw_normal.
inline constexpr std::int64_t kInputChunk = 4096;

/// Draws elements [chunk · kInputChunk, chunk · kInputChunk + values.size()) of a tensor in memory
/// order, at most kInputChunk, as float32. Element 4 i + j of the chunk is the normal quantile
/// (relative error below 1e-6, |value| ≤ 6.4) of word j of Philox4x32-10 with counter
/// {chunk, 2^31 + tensor, i, 0} and key `seed`. Uses only integer operations and unfused IEEE 754
/// float32 +, −, ×, ÷, √, so every device draws bitwise the same values.
void draw_normal(std::uint64_t seed, InputTensor tensor, std::int64_t chunk,
                 std::span<float> values);

/// Fills a contiguous tensor in device memory with the rows `tokens` (disjoint, ascending ranges)
/// of tensor `id` of make_inputs, which has the same heads and dim; remaining rows become 0. Values
/// do not depend on the number of tokens of the whole tensor, of which no other row is drawn.
/// Asynchronous on the device's stream.
void draw_rows(DeviceKind device, const TensorView& tensor, std::uint64_t seed, InputTensor id,
               std::span<const Range> tokens, const InputLaw& law = {});

/// q and dout [tokens_q, heads_q, dim], k and v [tokens_k, heads_k, dim] in the memory of the
/// problem's device: float32, or bfloat16 or float16 rounded to nearest from it; bitwise equal on
/// every device. Sink logits stay float32. `documents` as of input_law.
Inputs make_inputs(const Problem& problem, std::uint64_t seed,
                   InputStyle style = InputStyle::normal,
                   std::span<const std::int64_t> documents = {});

}  // namespace longca
