#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "axis_notices.h"
#include "bench/suite/axes.h"
#include "bench/suite/case.h"
#include "bench/suite/own_files.h"
#include "core/error.h"
#include "core/printable.h"
#include "core/python_random.h"
#include "core/run_files.h"
#include "mask/generators.h"
#include "mask/lengths.h"
#include "mask/mask_json.h"
#include "mask/own_file.h"
#include "mask/own_lengths.h"
#include "mask/own_mask.h"
#include "report/format.h"
#include "report/mask_picture.h"
#include "report/table.h"
#include "verbs.h"

namespace longca {
namespace {

/// Options that carry one value of an axis each, `--block-tokens 96` for the axis block_tokens,
/// with the axis's own parser, limits and default. Outlives the parsing of the command line.
class AxisOptions {
 public:
  /// Adds the option of an axis, or with `positional` an argument of that name.
  CLI::Option* add(CLI::App& verb, std::string_view axis, const std::string& positional = "");
  /// The case of the values given; the other axes added have their defaults. Throws InputError
  /// naming the axis, the value and the limit.
  Case read() const;
  /// The options that were given though the mask does not depend on their axes.
  std::vector<std::pair<const Axis*, const CLI::Option*>> unused_by(const MaskTraits& mask) const;

 private:
  struct Entry {
    const Axis* axis;
    std::string text;  ///< CLI11 keeps a reference
    const CLI::Option* option = nullptr;
  };
  std::deque<Entry> entries_;
};

CLI::Option* AxisOptions::add(CLI::App& verb, std::string_view axis_name,
                              const std::string& positional) {
  const Axis& axis = find_axis(axis_name);
  std::string option = "--" + axis.name;
  std::replace(option.begin(), option.end(), '_', '-');
  Entry& entry = entries_.emplace_back(Entry{&axis, axis.standard});
  CLI::Option* added =
      verb.add_option(positional.empty() ? option : positional, entry.text, axis.help)
          ->type_name(positional.empty() ? axis.values : "");
  entry.option = added;
  return added;
}

Case AxisOptions::read() const {
  Case c;
  for (const auto& [axis, text, option] : entries_) {
    const auto values = axis->parse(text);
    if (values.size() != 1) {
      throw_input_error("{} takes one value here, not '{}'", axis->name, text);
    }
    axis->assign(c, values.front());
  }
  return c;
}

std::vector<std::pair<const Axis*, const CLI::Option*>> AxisOptions::unused_by(
    const MaskTraits& mask) const {
  std::vector<std::pair<const Axis*, const CLI::Option*>> unused;
  for (const auto& [axis, text, option] : entries_) {
    const bool applies = axis->applies == nullptr || axis->applies(mask);
    if (!applies && option->count() > 0) unused.emplace_back(axis, option);
  }
  return unused;
}

struct LengthsOptions {
  AxisOptions axes;
  bool as_json = false;
};

void print_lengths(const LengthsOptions& options) {
  const Case c = options.axes.read();
  PythonRandom random(c.seed);
  const auto lengths = sample_lengths(*c.lengths, c.tokens, random);
  if (!options.as_json) {
    fmt::print("{}\n", fmt::join(lengths, " "));
    return;
  }
  const nlohmann::ordered_json json{
      {"distribution", *c.lengths}, {"tokens", c.tokens}, {"seed", c.seed}, {"lengths", lengths}};
  fmt::print("{}\n", json.dump());
}

/// Key blocks over all lists that this verb draws and lists: 1 GiB of indices.
constexpr double kMaxKeptBlocks = 1 << 28;
/// Lengths and slices that are printed without --json.
constexpr std::size_t kShown = 12;
constexpr int kIndent = 15;  ///< of the values of what is printed without --json

struct MaskOptions {
  AxisOptions axes;
  CLI::Option* tokens = nullptr;  ///< required of all masks but the user's own
  bool as_json = false;
  std::string plot;
};

/// Refuses block lists, which grow with tokens², before they fill the memory.
void check_size(const MaskSpec& spec) {
  const double kept = kept_blocks(spec);
  if (kept > kMaxKeptBlocks) {
    throw_input_error(
        "{} of {} tokens in blocks of {} keeps {:.0f} blocks over {} heads, and at most {:.0f} can "
        "be listed: use a larger --block or fewer --heads",
        spec.name, spec.tokens, spec.block, kept,
        spec.block_heads == "kv" ? spec.heads_k : spec.heads_q, kMaxKeptBlocks);
  }
}

std::string shortened(std::span<const std::int64_t> values) {
  const auto shown = values.first(std::min(values.size(), kShown));
  return fmt::format("{}{}", fmt::join(shown, " "), values.size() > kShown ? " …" : "");
}

void print_slices(std::span<const MaskSlice> slices) {
  fmt::print("\n  {:>10} {:>10} {:>10} {:>10}  type\n", "q_begin", "q_end", "k_begin", "k_end");
  for (const MaskSlice& s : slices.first(std::min(slices.size(), kShown))) {
    fmt::print("  {:>10} {:>10} {:>10} {:>10}  {}\n", s.q_begin, s.q_end, s.k_begin, s.k_end,
               to_string(s.type));
  }
  if (slices.size() > kShown) {
    fmt::print("  … and {} more: --json lists all\n", slices.size() - kShown);
  }
}

void print_blocks(const BlockLists& blocks, const MaskSpec& spec) {
  const bool of_kv = spec.block_heads == "kv";
  const bool fits = blocks.heads == (of_kv ? spec.heads_k : spec.heads_q);
  fmt::print("lists          {}{}\n", blocks.heads,
             !fits   ? ""
             : of_kv ? ", one per KV head"
                     : ", one per query head");
  if (spec.block_causal) fmt::print("causal         no query sees a later key\n");
  fmt::print("query blocks   {}\nkey blocks     {}\nkept blocks    {}\n", blocks.q_blocks(),
             blocks.k_blocks(), blocks.indices.size());
}

/// " (pile, seed 42)": where the documents of a mask come from; "" for a mask of the user's own.
std::string source_of_documents(const MaskSpec& spec) {
  if (find_own_mask(spec.name) != nullptr) return "";
  if (mask_traits(spec.name).uses_block_tokens) return fmt::format(" (drawn, seed {})", spec.seed);
  if (find_own_lengths(spec.lengths) != nullptr) {
    return fmt::format(" ({})", without_hash(spec.lengths));
  }
  return fmt::format(" ({}, seed {})", spec.lengths, spec.seed);
}

void print_summary(const GeneratedMask& generated, const MaskSpec& spec) {
  const Mask& mask = generated.mask;
  const double cells = std::pow(static_cast<double>(spec.tokens), 2);
  const std::string mask_line = fmt::format("mask           {}: {}", without_hash(spec.name),
                                            mask_traits(spec.name).description);
  fmt::print("{}\n", with_hanging_indent(mask_line, terminal_table_options().width, kIndent));
  fmt::print("tokens         {}\n", spec.tokens);
  if (!generated.lengths.empty()) {
    const std::string line = fmt::format("documents      {}{}: {}", generated.lengths.size(),
                                         source_of_documents(spec), shortened(generated.lengths));
    fmt::print("{}\n", with_hanging_indent(line, terminal_table_options().width, kIndent));
  }
  if (generated.prefix) fmt::print("prefix         {}\n", *generated.prefix);
  if (generated.window) fmt::print("window         {}\n", *generated.window);
  if (generated.global_tokens) fmt::print("global tokens  {}\n", *generated.global_tokens);
  if (mask.blocks() != nullptr) print_blocks(*mask.blocks(), spec);
  fmt::print("area           {} cells, {:.4g} % of tokens²\n", area_text(mask),
             100 * mask.mean_area() / cells);
  if (mask.blocks() == nullptr) print_slices(mask.slices());
}

Case case_of(const MaskOptions& options) {
  Case c = options.axes.read();
  if (options.tokens->count() == 0) {
    const OwnMask* own = find_own_mask(c.mask);
    if (own == nullptr) throw InputError("--tokens is required (longca mask --help says more)");
    c.tokens = own->generated.mask.q_tokens();
  }
  return c;
}

void print_unused(const AxisOptions& axes, const std::string& mask) {
  for (const auto& [axis, option] : axes.unused_by(mask_traits(mask))) {
    fmt::print(stderr, "longca: {} {} is not used by {}: it is of {}\n", option->get_name(),
               printable(option->results().back()), printable(without_hash(mask)),
               masks_with(*axis));
  }
}

void refuse_overwriting(const OwnFiles& own, const std::string& plot) {
  RunFiles files;
  if (own.mask) files.reads("the mask", *own.mask);
  if (own.lengths) files.reads("--lengths", *own.lengths);
  files.writes_view("--plot", plot);
}

void print_mask(const MaskOptions& options) {
  const Case c = case_of(options);
  const MaskSpec spec = c.mask_spec();
  check_size(spec);
  refuse_overwriting(own_files(c), options.plot);
  const GeneratedMask generated = generate_mask(spec);
  print_unused(options.axes, c.mask);
  if (!options.plot.empty()) plot_mask(generated, spec, options.plot);
  if (options.as_json) {
    write_mask_json(std::cout, generated, spec);
  } else {
    print_summary(generated, spec);
  }
}

}  // namespace

void add_lengths(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("lengths", "Document lengths drawn from a distribution");
  auto options = std::make_shared<LengthsOptions>();
  options->axes.add(*verb, "lengths", "DIST")->required();
  options->axes.add(*verb, "tokens")->required();
  options->axes.add(*verb, "seed");
  verb->add_flag("--json", options->as_json, "one JSON object instead of the bare numbers");
  verb->footer("Example: longca lengths prolong64k --tokens 8192 --seed 42 --json");
  verb->callback([options] { print_lengths(*options); });
}

void add_mask(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("mask", "One mask: its slices or blocks, area and density");
  auto options = std::make_shared<MaskOptions>();
  options->axes.add(*verb, "mask", "MASK")->required();
  options->tokens = options->axes.add(*verb, "tokens");
  for (const char* axis :
       {"lengths", "seed", "block_tokens", "heads", "block", "block_heads", "block_causal"}) {
    options->axes.add(*verb, axis);
  }
  options->axes.add(*verb, "window")->description("reach of sliding windows (auto: 1024)");
  options->axes.add(*verb, "density")->description("share of the key blocks kept, in (0, 1]");
  verb->add_flag("--json", options->as_json, "one JSON object with every slice or block");
  verb->add_option("--plot", options->plot, "draws it (.png, .svg or .pdf; needs gnuplot)")
      ->type_name("FILE");
  verb->footer("Example: longca mask causal_document --tokens 8192 --plot mask.png");
  verb->callback([options] { print_mask(*options); });
}

}  // namespace longca
