#include "bench/suite/case.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/suite/axes.h"
#include "core/error.h"
#include "core/nearest.h"
#include "mask/own_mask.h"

namespace longca {
namespace {

/// "axis=value axis=value …" of the case's axes for which `belongs` holds.
template <typename Belongs>
std::string key_of(const Case& c, const Belongs& belongs) {
  std::string key;
  for (const Axis& axis : axis_table()) {
    if (!belongs(axis)) continue;
    const auto value = axis.text(c);
    if (!value) continue;
    if (!key.empty()) key += ' ';
    key += axis.name + '=' + *value;
  }
  return key;
}

/// Two cells that differ in an axis which is unknown here would have one key.
void refuse_unknown_keys(const nlohmann::json& json) {
  static const std::vector<std::string> known = [] {
    std::vector<std::string> keys;
    for (const Axis& axis : axis_table())
      keys.insert(keys.end(), axis.keys.begin(), axis.keys.end());
    return keys;
  }();
  for (const auto& [key, value] : json.items()) {
    if (std::ranges::find(known, key) != known.end()) continue;
    throw_input_error(
        "the case has the unknown key '{}'{}; columns of your own stand beside 'case'", key,
        suggestion(key, known));
  }
}

}  // namespace

std::string_view to_string(Pass pass) {
  if (pass == Pass::step) return "step";
  return pass == Pass::forward ? "forward" : "backward";
}

std::optional<Pass> parse_pass(std::string_view text) {
  const auto found = std::ranges::find(kPasses, text, [](Pass pass) { return to_string(pass); });
  return found == std::end(kPasses) ? std::nullopt : std::optional(*found);
}

MaskSpec Case::mask_spec() const {
  MaskSpec spec;
  spec.name = mask;
  spec.tokens = tokens;
  spec.seed = seed;
  spec.window = window;
  spec.block_tokens = block_tokens;
  spec.heads_q = heads_q;
  spec.heads_k = heads_k;
  if (lengths) spec.lengths = *lengths;
  if (block_heads) spec.block_heads = *block_heads;
  if (block) spec.block = *block;
  if (density) spec.density = *density;
  const OwnMask* own = find_own_mask(mask);
  spec.block_causal = own != nullptr ? own->block_causal : block_causal.value_or(0) != 0;
  return spec;
}

Problem Case::problem() const {
  Problem problem;
  problem.tokens_q = tokens;
  problem.tokens_k = tokens;
  problem.heads_q = heads_q;
  problem.heads_k = heads_k;
  problem.head_dim = head_dim;
  problem.head_dim_v = head_dim_v.value_or(0);
  problem.dtype = dtype;
  problem.device = device == "cpu" ? DeviceKind::cpu : DeviceKind::cuda;
  problem.backward = pass != Pass::forward;
  problem.deterministic = deterministic.value_or(0) != 0;
  problem.sink = sink.value_or(0) != 0;
  problem.softcap = static_cast<float>(softcap.value_or(0));
  return problem;
}

InputStyle Case::input_style() const {
  return inputs ? parse_input_style(*inputs).value() : InputStyle::normal;
}

std::string Case::key() const {
  return key_of(*this, [](const Axis&) { return true; });
}

std::string Case::problem_key() const {
  return key_of(*this, shapes_problem);
}

void to_json(nlohmann::json& json, const Case& c) {
  json = nlohmann::json::object();
  for (const Axis& axis : axis_table()) axis.write(c, json);
}

void from_json(const nlohmann::json& json, Case& c) {
  if (!json.is_object()) throw InputError("\"case\" is not an object");
  refuse_unknown_keys(json);
  for (const Axis& axis : axis_table()) {
    axis.read(json, c);
    // The limits of the command line. Names are left: another build or a plug-in has others.
    if (const auto value = axis.names == nullptr ? axis.text(c) : std::nullopt) axis.parse(*value);
  }
}

}  // namespace longca
