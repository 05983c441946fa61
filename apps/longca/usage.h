#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace longca {

/// The sentence for a command line that CLI11 could not use, with the nearest verb or option that
/// exists. CLI11's own messages name neither the verb nor a suggestion.
std::string explain_usage_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace longca
