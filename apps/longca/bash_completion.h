#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace longca {

/// A bash script that completes the verbs of `app`, their options, axes and the names of axes that
/// have any. Everything is in the script: completing starts no program.
std::string bash_completion(const CLI::App& app);

}  // namespace longca
