#include "usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "core/nearest.h"

namespace longca {
namespace {

/// The verb that the command line chose, or nullptr.
const CLI::App* chosen_verb(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? nullptr : chosen.front();
}

std::vector<std::string> verb_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!verb->get_group().empty()) names.push_back(verb->get_name());
  }
  return names;
}

std::vector<std::string> option_names(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string explain_extra(const CLI::App& app, const std::string& argument) {
  const CLI::App* verb = chosen_verb(app);
  if (argument.starts_with('-')) {
    const std::string name = argument.substr(0, argument.find('='));
    const auto candidates = option_names(verb != nullptr ? *verb : app);
    return fmt::format("unknown option '{}'{}{}", name,
                       verb != nullptr ? " of " + verb->get_name() : "",
                       suggestion(name, candidates));
  }
  if (verb == nullptr) {
    return fmt::format("unknown verb '{}'{}", argument, suggestion(argument, verb_names(app)));
  }
  return fmt::format("{} takes no further argument, got '{}'", verb->get_name(), argument);
}

/// CLI11's message as the end of a sentence: one line, no capital, no full stop.
std::string as_clause(std::string message) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  while (message.ends_with(' ') || message.ends_with('.')) message.pop_back();
  const auto is_lower = [](char c) { return std::islower(static_cast<unsigned char>(c)) != 0; };
  if (message.size() > 1 && is_lower(message[1])) {
    message[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(message[0])));
  }
  return message;
}

}  // namespace

std::string explain_usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* verb = chosen_verb(app);
  // What was not understood comes first: a mistyped option is often why another one is missing.
  const auto extras = app.remaining(true);
  if (!extras.empty()) return explain_extra(app, extras.front());
  if (verb == nullptr) return "a verb is missing; longca --help lists them";
  return fmt::format("{} (longca {} --help says more)", as_clause(error.what()), verb->get_name());
}

}  // namespace longca
