#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "attention/api/problem.h"
#include "attention/inputs/inputs.h"
#include "core/dtype.h"
#include "mask/generators.h"

namespace longca {

enum class Pass : std::uint8_t {
  forward,
  backward,
  step  ///< a forward and a backward pass one after the other, timed as one
};
inline constexpr Pass kPasses[] = {Pass::forward, Pass::backward, Pass::step};
std::string_view to_string(Pass pass);
std::optional<Pass> parse_pass(std::string_view text);

/// A value for every axis. Axes that the mask does not depend on are empty, so that equal work has
/// an equal key.
struct Case {
  std::string kernel;
  std::string mask;
  std::int64_t tokens = 0;
  int heads_q = 1;
  int heads_k = 1;
  int head_dim = 128;
  std::optional<int> head_dim_v;  ///< of v and o, below head_dim; absent where they are equal
  DType dtype = DType::bfloat16;
  Pass pass = Pass::forward;
  std::optional<std::int64_t> deterministic;  ///< 1, or absent; of backward passes only
  std::optional<std::int64_t> sink;           ///< 1, or absent
  std::optional<double> softcap;              ///< positive, or absent
  std::uint64_t seed = 42;
  std::optional<std::string> lengths;
  std::optional<std::int64_t> window;
  std::optional<std::int64_t> block_tokens;
  std::optional<double> density;
  std::optional<std::int64_t> block;
  std::optional<std::string> block_heads;
  std::optional<std::int64_t> block_causal;  ///< 1, or absent
  std::optional<std::string> selection;      ///< "scores", or absent: blocks drawn at random
  std::optional<std::string> inputs;         ///< an InputStyle, or absent: normal
  std::string device = "cpu";
  std::string mode = "burst";
  /// Of cells over ranks (`longca cp`) only; there `tokens` is the total. `factor` is absent where
  /// the scheme has none.
  std::optional<std::string> scheme;
  std::optional<int> ranks;
  std::optional<std::string> shard;
  std::optional<int> factor;
  std::optional<std::string> transport;
  std::optional<std::string> platform;  ///< of simulated cells, whose mode is "simulated"
  /// Of simulated cells, the mode that they stand for: "sustained", or absent: burst.
  std::optional<std::string> simulated_mode;

  /// The mask to generate, and the shape of the attention.
  MaskSpec mask_spec() const;
  Problem problem() const;
  InputStyle input_style() const;
  /// Whether its mask's blocks are selected by its inputs' scores instead of drawn at random.
  bool selects_by_scores() const { return selection.has_value(); }
  /// Canonical text of all axes: the record's key. Equal for equal work.
  std::string key() const;
  /// The key of what cells with the same inputs and reference share: without kernel, pass,
  /// determinism, mode, and the scheme's axes except the number of ranks.
  std::string problem_key() const;

  bool operator==(const Case&) const = default;
};

/// The record's "case" object, empty axes absent; from_json throws InputError naming the key.
void to_json(nlohmann::json& json, const Case& c);
void from_json(const nlohmann::json& json, Case& c);

}  // namespace longca
