#pragma once

#include <CLI/CLI.hpp>
#include <deque>
#include <string>
#include <string_view>
#include <utility>

#include "bench/case.h"

namespace longca {

/// Options that carry one value of an axis each, `--block-tokens 96` for the axis block_tokens,
/// with the axis's own parser, limits and default. Outlives the parsing of the command line.
class AxisOptions {
 public:
  /// Adds the option of an axis, or with `positional` an argument of that name.
  CLI::Option* add(CLI::App& verb, std::string_view axis, const std::string& positional = "");
  /// The case of the values given; the other axes added have their defaults. Throws InputError
  /// naming the axis, the value and the limit.
  Case read() const;

 private:
  std::deque<std::pair<std::string, std::string>> texts_;  ///< axis, text; CLI11 keeps references
};

}  // namespace longca
