#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

// What the command line's parser says: its help, and a sentence for each line that it refuses.

namespace longca {

/// The options of all verbs that help leaves out (of group ""). While a line is parsed they are
/// like others, since the parser's errors do not name hidden ones.
class UnlistedOptions {
 public:
  explicit UnlistedOptions(const CLI::App& app);
  /// To be called before help is printed.
  void hide();

 private:
  std::vector<CLI::Option*> options_;
};

/// Adds --plugin FILE, which may be repeated, to a verb. `plugins` outlives the parsing.
CLI::Option* add_plugin_option(CLI::App& verb, std::vector<std::string>& plugins);

/// Refuses empty values of all options, and has the usage line of a verb name what help leaves out.
void set_up_usage(CLI::App& app);

/// The sentence for a command line that CLI11 could not use, with the nearest verb or option that
/// exists. CLI11's own messages name neither the verb nor a suggestion.
std::string explain_usage_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace longca
