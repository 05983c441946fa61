#include "usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/nearest.h"

namespace longca {
namespace {

std::vector<CLI::App*> verbs_of(const CLI::App& app) {
  std::vector<CLI::App*> verbs;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!verb->get_group().empty()) verbs.push_back(app.get_subcommand(verb->get_name()));
  }
  return verbs;
}

/// The verb that the command line chose, or nullptr.
const CLI::App* chosen_verb(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? nullptr : chosen.front();
}

std::vector<std::string> verb_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : verbs_of(app)) names.push_back(verb->get_name());
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
    const std::string near = suggestion(argument, verb_names(app));
    return fmt::format("unknown verb '{}'{}", argument,
                       near.empty() ? "; longca --help lists them" : near);
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

/// The option that a message of CLI11 is about, or nullptr.
const CLI::Option* option_of(const CLI::App& verb, std::string_view message) {
  for (const CLI::Option* option : verb.get_options()) {
    const std::string name = option->get_name();
    if (message.starts_with(name + ": ") ||
        message.starts_with("Could not convert: " + name + " = ")) {
      return option;
    }
  }
  return nullptr;
}

bool is_number(std::string_view text) {
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && stop == text.data() + text.size();
}

std::string explain_conversion(const CLI::Option& option) {
  const std::string value = option.results().empty() ? "" : option.results().back();
  if (option.get_items_expected_max() == 0) {
    return fmt::format("{} takes no value, got '{}'", option.get_name(), value);
  }
  return fmt::format("{} '{}' is not a {}number", option.get_name(), value,
                     is_number(value) ? "whole " : "");
}

/// Too many values, or too few.
std::string explain_count(const CLI::Option& option, std::string_view message) {
  const std::string name = option.get_name();
  const std::size_t given = option.results().size();
  const int wanted = option.get_items_expected_max();
  if (message.ends_with(" missing")) {
    return fmt::format("{} lacks its value: {}", name, option.get_type_name());
  }
  if (wanted == 1) return fmt::format("{} is given {} times, and takes one value", name, given);
  return fmt::format("{} takes {} values: {}; got {}", name, wanted, option.get_type_name(), given);
}

std::string explain_refusal(const CLI::App& verb, const CLI::ParseError& error) {
  const std::string message = error.what();
  if (const auto flag = message.find(" was given a disallowed flag override");
      flag != std::string::npos) {
    return fmt::format("--{} takes no value", message.substr(0, flag));
  }
  const CLI::Option* option = option_of(verb, message);
  if (option != nullptr && dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) {
    return explain_conversion(*option);
  }
  if (option != nullptr && dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    return explain_count(*option, message);
  }
  return as_clause(message);
}

/// Names SUITE in the usage line though the lines below it leave it out.
class HelpFormatter : public CLI::Formatter {
  /// CLI11 leaves an empty line for the group of options that help leaves out.
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    std::string help = CLI::Formatter::make_help(app, std::move(name), mode);
    for (auto at = help.find("\n\n\n"); at != help.npos; at = help.find("\n\n\n", at)) {
      help.erase(at, 1);
    }
    return help;
  }
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    const std::string name = CLI::Formatter::make_option_name(option, is_positional);
    return name.empty() ? option->get_single_name() : name;
  }
};

}  // namespace

UnlistedOptions::UnlistedOptions(const CLI::App& app) {
  for (CLI::App* verb : verbs_of(app)) {
    for (CLI::Option* option : verb->get_options()) {
      if (!option->get_group().empty()) continue;
      options_.push_back(option);
      option->group("Options");
    }
  }
}

void UnlistedOptions::hide() {
  for (CLI::Option* option : options_) option->group("");
}

CLI::Option* add_plugin_option(CLI::App& verb, std::vector<std::string>& plugins) {
  return verb.add_option("--plugin", plugins, "kernels from a .so or .py file; repeatable")
      ->type_name("FILE")
      ->allow_extra_args(false);
}

void set_up_usage(CLI::App& app) {
  auto formatter = std::make_shared<HelpFormatter>();
  formatter->column_width(app.get_formatter()->get_column_width());
  const CLI::Validator not_empty(
      [](std::string& value) { return std::string(value.empty() ? "its value is empty" : ""); },
      "");
  // The library would take the largest number of 64 bits in place of a larger one.
  const auto refuse_too_large = [](const std::string& name) {
    return CLI::Validator(
        [name](std::string& value) -> std::string {
          std::int64_t number = 0;
          const auto read = std::from_chars(value.data(), value.data() + value.size(), number);
          if (read.ec == std::errc::result_out_of_range) {
            throw_input_error("{} {} is beyond the whole numbers of 64 bits", name, value);
          }
          return {};
        },
        "");
  };
  app.formatter(formatter);
  for (CLI::App* verb : verbs_of(app)) {
    verb->formatter(formatter);
    for (CLI::Option* option : verb->get_options()) {
      if (option->get_items_expected_min() > 0) option->check(not_empty);
      if (option->get_type_name() == "N" || option->get_type_name() == "MIB") {
        option->check(refuse_too_large(option->get_name()));
      }
      if (option->get_items_expected_max() == 0) option->disable_flag_override();
    }
  }
}

std::string explain_usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* verb = chosen_verb(app);
  // What was not understood comes first: a mistyped option is often why another one is missing.
  const auto extras = app.remaining(true);
  if (!extras.empty()) return explain_extra(app, extras.front());
  if (verb == nullptr) return "a verb is missing; longca --help lists them";
  return fmt::format("{} (longca {} --help says more)", explain_refusal(*verb, error),
                     verb->get_name());
}

}  // namespace longca
