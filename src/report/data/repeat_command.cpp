#include "report/data/repeat_command.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>
#include <vector>

#include "bench/suite/axes.h"
#include "bench/suite/own_files.h"
#include "mask/own_file.h"
#include "report/data/draws.h"

namespace longca {

std::string shell_quoted(const std::string& text) {
  constexpr std::string_view kPlain = "_.,:=/+-";
  bool is_plain = !text.empty();
  std::string quoted = "'";
  for (const char letter : text) {
    const bool is_word = std::isalnum(static_cast<unsigned char>(letter)) != 0;
    is_plain = is_plain && (is_word || kPlain.find(letter) != std::string_view::npos);
    if (letter == '\'') {
      quoted += "'\\''";
    } else {
      quoted += letter;
    }
  }
  return is_plain ? text : quoted + "'";
}

namespace {

/// The command line of the run that made the record, word by word; empty if it does not say.
std::vector<std::string> words_of_run(const Record& record) {
  std::vector<std::string> words;
  if (!record.env->is_object() || !record.env->contains("argv")) return words;
  for (const nlohmann::json& word : record.env->at("argv")) {
    if (word.is_string()) words.push_back(word.get<std::string>());
  }
  return words;
}

/// What that command line gave an option: "--set KEY=VALUE" or "--set=KEY=VALUE".
std::vector<std::string> given(const Record& record, const std::string& option) {
  const std::vector<std::string> words = words_of_run(record);
  std::vector<std::string> values;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == option && i + 1 < words.size()) values.push_back(words[++i]);
    if (words[i].starts_with(option + "=")) values.push_back(words[i].substr(option.size() + 1));
  }
  return values;
}

std::string note(const Record& record, const char* name) {
  const auto found = record.notes.find(name);
  return found == record.notes.end() ? "" : found->second;
}

/// The figures that were set by hand.
std::vector<std::string> set_figures(const Record& record) {
  if (auto figures = given(record, "--set"); !figures.empty()) return figures;
  std::istringstream words(note(record, "set"));
  return {std::istream_iterator<std::string>(words), {}};
}

/// What names the record's platform to --platform: the page that the run was given, or its name
/// without the hash of figures that were set. Of an own page whose record does not say where it is,
/// a file of the platform's name: the reader's to find.
std::string platform_of(const Record& record) {
  if (const auto pages = given(record, "--platform"); !pages.empty()) return pages.back();
  if (std::string page = note(record, "page"); !page.empty()) return page;
  constexpr std::size_t kHashDigits = 8;
  const std::string& name = *record.c.platform;
  const auto has = [&](std::string_view what) {
    return name.size() > what.size() + kHashDigits &&
           name.find(what, name.size() - what.size() - kHashDigits) != name.npos;
  };
  if (has("-own")) return name + ".toml";
  return has("-set") ? name.substr(0, name.rfind("-set")) : name;
}

std::string verb_of(const Record& record) {
  if (!record.c.platform) return record.c.scheme ? "longca cp" : "longca bench";
  std::string verb = "longca simulate --platform " + shell_quoted(platform_of(record));
  for (const std::string& figure : set_figures(record)) verb += " --set " + shell_quoted(figure);
  for (const std::string option : {"--rates", "--against"}) {  // both change what is simulated
    for (const std::string& file : given(record, option)) {
      verb += " " + option + " " + shell_quoted(file);
    }
  }
  return verb;
}

/// Whether a key calls the file at `path` so: OwnFile writes '_' for characters that names lack.
bool is_called(const std::filesystem::path& path, std::string_view name) {
  return std::ranges::equal(path.filename().string(), name, [](char own, char of_name) {
    return own == of_name || of_name == '_';
  });
}

/// The file by which an axis names the user's own mask or lengths: where this process or the run
/// read it, else the file's name alone. Other values as they are.
std::string own_file(const Axis& axis, const Record& record, const std::string& value) {
  if (axis.name != "mask" && axis.name != "lengths") return value;
  std::string file(without_hash(value));
  const OwnFiles read = own_files(record.c);
  const auto& path = axis.name == "mask" ? read.mask : read.lengths;
  if (path && is_called(*path, file)) return path->string();  // else a part of that file
  for (const std::string& word : words_of_run(record)) {
    if (!word.starts_with(axis.name + "=")) continue;
    std::istringstream values(word.substr(axis.name.size() + 1));
    for (std::string one; std::getline(values, one, ',');) {
      if (means_file(one) && is_called(one, file)) return one;
    }
  }
  return file;
}

/// The axis as " -a tokens=8192"; "" where the case has none, or --platform says it.
std::string axis_argument(const Axis& axis, const Record& record) {
  const bool by_platform = record.c.platform && (axis.name == "platform" || axis.name == "mode");
  if (by_platform || !axis.text(record.c)) return "";
  if (axis.name == "simulated_mode") return " -a mode=" + *record.c.simulated_mode;
  return " -a " + shell_quoted(axis.name + "=" + own_file(axis, record, *axis_text(axis, record)));
}

}  // namespace

RepeatCommand repeat_command(const Record& record) {
  RepeatCommand command{verb_of(record), ""};
  for (const Axis& axis : axis_table()) {
    (shapes_problem(axis) ? command.problem : command.row) += axis_argument(axis, record);
  }
  return command;
}

std::string command_but_for(const Record& record, std::span<const std::string_view> open) {
  std::string command = verb_of(record);
  for (const Axis& axis : axis_table()) {
    if (std::ranges::find(open, axis.name) == open.end()) command += axis_argument(axis, record);
  }
  return command;
}

}  // namespace longca
