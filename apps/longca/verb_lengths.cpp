#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "axis_options.h"
#include "core/python_random.h"
#include "mask/lengths.h"
#include "verbs.h"

namespace longca {
namespace {

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

}  // namespace longca
