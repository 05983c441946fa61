#include "bench/suite/axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "attention/api/registry.h"
#include "attention/api/softcap.h"
#include "bench/measure/measurement.h"
#include "bench/suite/axis_field.h"
#include "bench/suite/axis_values.h"
#include "bench/suite/scheme_axes.h"
#include "core/error.h"
#include "core/nearest.h"
#include "core/printable.h"
#include "mask/lengths.h"
#include "mask/own_lengths.h"
#include "mask/own_mask.h"
#include "parallel/plan/rank_limits.h"

namespace longca {
namespace {

using nlohmann::json;

constexpr std::int64_t kMaxHeads = 4096;
constexpr std::int64_t kMaxDim = 1024;
constexpr std::int64_t kMaxSeed = std::numeric_limits<std::int64_t>::max();

Names kernel_names() {
  return KernelRegistry::global().names();
}
Names mask_names() {
  Names names;
  for (const MaskTraits& mask : mask_table()) names.push_back(mask.name);
  return names;
}
template <std::size_t kCount, typename Enum>
Names names_of_all(const Enum (&values)[kCount]) {
  Names names;
  for (const Enum value : values) names.emplace_back(to_string(value));
  return names;
}
Names dtype_names() {
  return names_of_all(kDTypes);
}
Names pass_names() {
  return names_of_all(kPasses);
}
Names length_names() {
  const auto names = length_distribution_names();
  return {names.begin(), names.end()};
}
Names block_head_names() {
  return {"kv", "query"};
}
Names selection_names() {
  return {"random", "scores"};
}
Names input_names() {
  const auto names = input_style_names();
  return {names.begin(), names.end()};
}
Names device_names() {
  return {"cpu", "cuda"};
}
Names mode_names() {
  return measure_mode_names();
}

/// PyTorch's, TensorFlow's and LLVM's.
constexpr Alias kDTypeAliases[] = {{"bf16", "bfloat16"}, {"fp16", "float16"},  {"f16", "float16"},
                                   {"half", "float16"},  {"fp32", "float32"},  {"f32", "float32"},
                                   {"float", "float32"}, {"single", "float32"}};
constexpr Alias kDeviceAliases[] = {{"gpu", "cuda"}};

Axis heads_axis() {
  Axis axis{.name = "heads",
            .values = "HQ:HK",
            .help = "query and KV heads; H alone is H:H",
            .standard = "64:8"};
  axis.parse = head_pairs("heads", kMaxHeads);
  axis.assign = [](Case& c, const std::string& value) {
    std::tie(c.heads_q, c.heads_k) = split_pair(value);
  };
  axis.text = [](const Case& c) -> std::optional<std::string> {
    return fmt::format("{}:{}", c.heads_q, c.heads_k);
  };
  axis.keys = {"heads_q", "heads_k"};
  axis.write = [](const Case& c, json& object) {
    object["heads_q"] = c.heads_q;
    object["heads_k"] = c.heads_k;
  };
  axis.read = [](const json& object, Case& c) {
    c.heads_q = read_entry<int>(object, "heads_q");
    c.heads_k = read_entry<int>(object, "heads_k");
  };
  return axis;
}

Axis dim_axis() {
  Axis axis{.name = "dim",
            .values = "D|DQK:DV",
            .help = "head dimension; of q and k, and of v where it is smaller: 192:128",
            .standard = "128"};
  axis.parse = dim_pairs("dim", kMaxDim);
  axis.assign = [](Case& c, const std::string& value) {
    const auto [of_keys, of_values] = split_pair(value);
    c.head_dim = of_keys;
    c.head_dim_v = of_values == of_keys ? std::nullopt : std::optional(of_values);
  };
  axis.text = [](const Case& c) -> std::optional<std::string> {
    return to_string(DimPair{c.head_dim, c.head_dim_v.value_or(c.head_dim)});
  };
  axis.keys = {"head_dim", "head_dim_v"};
  axis.write = [](const Case& c, json& object) {
    object["head_dim"] = c.head_dim;
    if (c.head_dim_v) object["head_dim_v"] = *c.head_dim_v;
  };
  axis.read = [](const json& object, Case& c) {
    c.head_dim = read_entry<int>(object, "head_dim");
    if (!object.contains("head_dim_v")) return;
    c.head_dim_v = read_entry<int>(object, "head_dim_v");
    if (c.head_dim_v == c.head_dim) c.head_dim_v.reset();
  };
  return axis;
}

Axis window_axis() {
  Axis axis{.name = "window",
            .values = "COUNT|auto",
            .help = fmt::format("reach of sliding windows; auto: {}, or as many as global tokens",
                                kDefaultWindow),
            .standard = "auto"};
  axis.parse = counts_or_word("window", 0, kMaxTokens, "auto");
  axis.applies = [](const MaskTraits& mask) { return mask.uses_window; };
  axis = field_axis<&Case::window>("window", std::move(axis));
  axis.assign = [](Case& c, const std::string& value) {
    c.window = value == "auto" ? std::nullopt : std::optional(from_text<std::int64_t>(value));
  };
  return axis;
}

Axis seed_axis() {
  Axis axis = count_axis<&Case::seed>("seed", "seed", "of the mask's draws and of the inputs", "42",
                                      0, kMaxSeed);
  axis.parse = draws_between("seed", 0, kMaxSeed);
  return axis;
}

Axis density_axis() {
  Axis axis{.name = "density",
            .values = "NUMBER",
            .help = "share of key blocks that block-sparse masks keep, in (0, 1]",
            .standard = "0.5"};
  axis.parse = numbers_above("density", 0.0, 1.0);
  axis.applies = [](const MaskTraits& mask) { return mask.uses_blocks; };
  return field_axis<&Case::density>("density", std::move(axis));
}

Axis softcap_axis() {
  Axis axis{.name = "softcap",
            .values = "NUMBER",
            .help = "c: scores s become c tanh(s / c) before the softmax; 0: as they are",
            .standard = "0"};
  axis.parse = numbers_or_zero("softcap", kMinSoftcap, kMaxSoftcap);
  return quiet(field_axis<&Case::softcap>("softcap", std::move(axis)));
}

Axis dtype_axis() {
  Axis axis = name_axis<&Case::dtype>("dtype", "type of q, k, v and o", "bfloat16", dtype_names);
  axis.parse = names_of("dtype", dtype_names, kDTypeAliases);
  return axis;
}

Axis device_axis() {
  Axis axis = name_axis<&Case::device>("device", "where kernels run; found: a GPU if there is one",
                                       "cpu", device_names);
  axis.parse = names_or_word("device", device_names, std::string(kFound), kDeviceAliases);
  axis.assign = [](Case& c, const std::string& value) {
    const bool gpu = value == kFound && Device::available(DeviceKind::cuda).ok();
    c.device = value != kFound ? value : gpu ? "cuda" : "cpu";
  };
  return axis;
}

/// An axis whose names are not all known to a reader of records: what it reads must look like one.
Axis checked_name(Axis axis) {
  axis.read = [name = axis.name, read = axis.read, text = axis.text](const json& object, Case& c) {
    read(object, c);
    if (const auto value = text(c)) check_name(name, *value);
  };
  return axis;
}

/// A name that is known already stands for itself.
std::string read_lengths(const std::filesystem::path& file) {
  return find_own_lengths(file.string()) != nullptr ? file.string() : add_own_lengths(file);
}

std::string read_mask(const std::filesystem::path& file) {
  return find_own_mask(file.string()) != nullptr ? file.string() : add_own_mask(file);
}

Axis mask_axis() {
  Axis axis = checked_name(name_axis<&Case::mask>(
      "mask", "which keys a query sees, or your own FILE", "causal", mask_names));
  axis.values = "NAME|FILE";
  axis.parse = names_or_files("mask", mask_names, read_mask);
  return axis;
}

Axis lengths_axis() {
  Axis axis = name_axis<&Case::lengths>(
      "lengths", "distribution of document lengths, or your own FILE", "prolong64k", length_names,
      [](const MaskTraits& mask) { return mask.uses_lengths; });
  axis.values = "NAME|FILE";
  axis.parse = names_or_files("lengths", length_names, read_lengths);
  return axis;
}

Axis over_ranks(Axis axis) {
  axis.over_ranks = true;
  return axis;
}

Axis ranks_axis() {
  Axis axis{
      .name = "ranks",
      .values = "COUNT|found",
      .help = "processes that share a sequence; found: 1, 2, 4, … and all that can be started",
      .standard = "found"};
  axis.parse = counts_or_word("ranks", 1, kMaxRanks, std::string(kFound));
  return over_ranks(field_axis<&Case::ranks>("ranks", std::move(axis)));
}

/// Simulated cells have it; nobody gives it as an axis, but as `setter` says.
Axis simulated_axis(Axis axis, const std::string& setter) {
  axis.parse = [refusal =
                    fmt::format("{} is no axis that can be given: {} sets it", axis.name, setter)](
                   std::string_view) -> std::vector<std::string> { throw InputError(refusal); };
  axis.set_by_verb = true;
  return over_ranks(checked_name(std::move(axis)));
}
Names no_names() {
  return {};
}

/// Is assigned after the case's ranks, which it needs.
Axis make_tokens_per_rank() {
  Axis axis{.name = std::string(kTokensPerRank),
            .values = "COUNT",
            .help = "instead of tokens: the length is ranks times this",
            .standard = ""};
  axis.parse = counts_between(axis.name, 1, kMaxTokens);
  axis.over_ranks = true;
  axis.assign = [](Case& c, const std::string& value) {
    c.tokens = c.ranks.value_or(1) * from_text<std::int64_t>(value);
    if (c.tokens > kMaxTokens) {
      throw_input_error("{} ranks of {} tokens are {} tokens, and the maximum is {}",
                        c.ranks.value_or(1), value, c.tokens, kMaxTokens);
    }
  };
  axis.text = [](const Case& c) -> std::optional<std::string> {
    if (!c.ranks || c.tokens % *c.ranks != 0) return std::nullopt;
    return to_text(c.tokens / *c.ranks);
  };
  return axis;
}

void add_rank_axes(std::vector<Axis>& table) {
  table.push_back(over_ranks(
      name_axis<&Case::scheme>("scheme", "how ranks share one sequence", "all", scheme_names)));
  table.push_back(ranks_axis());
  table.push_back(over_ranks(
      name_axis<&Case::shard>("shard", "which tokens a rank owns; published, best: the scheme's",
                              "published,best", shard_names)));
  table.push_back(over_ranks(count_axis<&Case::factor>(
      "factor", "factor", "ranks that share the heads, in schemes of two dimensions", "", 1,
      kMaxRanks)));
  table.push_back(over_ranks(name_axis<&Case::transport>(
      "transport", "what carries messages; mpi for CPUs, else nccl or peer", "", transport_names)));
  table.push_back(simulated_axis(
      name_axis<&Case::platform>("platform", "of simulated cells: longca simulate --platform", "",
                                 no_names),
      "longca simulate --platform P"));
  table.push_back(simulated_axis(
      name_axis<&Case::simulated_mode>(
          "simulated_mode", "of simulated cells: longca simulate -a mode=sustained", "", no_names),
      "longca simulate -a mode=sustained"));
}

std::vector<Axis> make_table() {
  const auto block_tokens = [](const MaskTraits& mask) { return mask.uses_block_tokens; };
  const auto blocks = [](const MaskTraits& mask) { return mask.uses_blocks; };
  std::vector<Axis> table;
  table.push_back(
      checked_name(name_axis<&Case::kernel>("kernel", "what runs", "all", kernel_names)));
  table.push_back(mask_axis());
  table.push_back(
      count_axis<&Case::tokens>("tokens", "tokens", "length of the sequence", "4K", 1, kMaxTokens));
  table.push_back(heads_axis());
  table.push_back(dim_axis());
  table.push_back(dtype_axis());
  table.push_back(name_axis<&Case::pass>(
      "pass", "forward, backward, or step: one after the other, timed as one", "forward,backward",
      pass_names));
  table.push_back(quiet(count_axis<&Case::deterministic>(
      "deterministic", "deterministic",
      "1: a backward pass that gives the same bits from call to call", "0", 0, 1)));
  table.push_back(quiet(count_axis<&Case::sink>(
      "sink", "sink", "1: a learned logit per query head in the softmax's denominator", "0", 0,
      1)));
  table.push_back(softcap_axis());
  table.push_back(lengths_axis());
  table.push_back(seed_axis());
  table.push_back(quiet(name_axis<&Case::inputs>(
      "inputs", "values of q and k: normal, in topics, 3 n, a liked first key, growing scores",
      "normal", input_names)));
  table.push_back(window_axis());
  table.push_back(count_axis<&Case::block_tokens>(
      "block_tokens", "block_tokens", "block of block_causal_document",
      to_text(kDefaultBlockTokens), 1, kMaxTokens, block_tokens));
  table.push_back(density_axis());
  table.push_back(count_axis<&Case::block>(
      "block", "block", "tokens of a block of block-sparse masks", "128", 1, kMaxTokens, blocks));
  table.push_back(name_axis<&Case::block_heads>(
      "block_heads", "one block list per KV or query head", "kv", block_head_names, blocks));
  table.push_back(quiet(count_axis<&Case::block_causal>(
      "block_causal", "block_causal", "1: no query of a block-sparse mask sees a later key", "0", 0,
      1, blocks)));
  table.push_back(quiet(name_axis<&Case::selection>(
      "selection", "blocks kept: at random, or those with the highest scores", "random",
      selection_names, blocks)));
  table.push_back(device_axis());
  table.push_back(name_axis<&Case::mode>(
      "mode", "burst: cold caches, pauses; sustained: back to back; graph: a burst as CUDA graph",
      "burst", mode_names));
  add_rank_axes(table);
  return table;
}

const Axis& tokens_per_rank_axis() {
  static const Axis axis = make_tokens_per_rank();
  return axis;
}

}  // namespace

std::span<const Axis> axis_table() {
  static const std::vector<Axis> table = make_table();
  return table;
}

std::vector<const Axis*> named_axes() {
  std::vector<const Axis*> axes;
  for (const Axis& axis : axis_table()) axes.push_back(&axis);
  axes.push_back(&tokens_per_rank_axis());
  return axes;
}

const Axis& find_axis(std::string_view name) {
  for (const Axis& axis : axis_table()) {
    if (axis.name == name) return axis;
  }
  if (name == tokens_per_rank_axis().name) return tokens_per_rank_axis();
  Names known;
  for (const Axis* axis : named_axes()) known.push_back(axis->name);
  throw_input_error("unknown axis '{}'{}; longca list axes lists them", name,
                    suggestion(name, known));
}

bool shapes_problem(const Axis& axis) {
  constexpr std::array<std::string_view, 10> kOthers = {
      "kernel", "pass",   "deterministic", "mode",     "scheme",
      "shard",  "factor", "transport",     "platform", "simulated_mode"};
  return std::ranges::find(kOthers, axis.name) == kOthers.end();
}

std::optional<std::string> full_text(const Axis& axis, const Case& c) {
  if (auto value = axis.text(c)) return value;
  if (!axis.quiet) return std::nullopt;
  if (axis.applies == nullptr) return axis.standard;
  const auto is_mask = [&](const MaskTraits& mask) { return mask.name == c.mask; };
  const auto mask = std::ranges::find_if(mask_table(), is_mask);  // a record's may be unknown
  if (mask == mask_table().end() || !axis.applies(*mask)) return std::nullopt;
  return axis.standard;
}

std::pair<const Axis*, std::string_view> split_axis_argument(std::string_view argument) {
  const std::size_t equals = argument.find('=');
  if (equals == std::string_view::npos) {
    throw_input_error("'{}' is not AXIS=VALUES, as in tokens=4K,8K", argument);
  }
  return {&find_axis(argument.substr(0, equals)), argument.substr(equals + 1)};
}

void parse_axis_argument(std::string_view argument, AxisValues& values) {
  const auto [found, list] = split_axis_argument(argument);
  const Axis& axis = *found;
  if ((axis.name == "tokens" && values.contains(kTokensPerRank)) ||
      (axis.name == kTokensPerRank && values.contains("tokens"))) {
    throw InputError("tokens and tokens_per_rank say the same thing: give one of them");
  }
  values[axis.name] = axis.parse(list);
}

Case canonical(Case c, int ranks_per_node) {
  const MaskTraits& mask = mask_traits(c.mask);
  for (const Axis& axis : axis_table()) {
    const bool applies =
        axis.over_ranks ? c.scheme.has_value() : axis.applies == nullptr || axis.applies(mask);
    if (!applies) axis.clear(c);
  }
  if (c.pass == Pass::forward) c.deterministic.reset();  // an axis of backward passes only
  if (c.scheme) fill_in_scheme(c, ranks_per_node);
  // global_sliding_window draws its window if none is given; for the others it is kDefaultWindow.
  if (mask.uses_window && !c.window && mask.name != "global_sliding_window") {
    c.window = kDefaultWindow;
  }
  return c;
}

}  // namespace longca
