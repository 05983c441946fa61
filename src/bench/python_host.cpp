#include "bench/python_host.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "attention/adapters/python/python_kernel.h"
#include "attention/api/registry.h"
#include "bench/data_directory.h"
#include "bench/plugin_loader.h"
#include "bench/process_answer.h"
#include "core/error.h"
#include "core/nearest.h"

namespace longca {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr double kAnswerLimit =
    60;                         // s: importing a large package from a cold disk takes that long
constexpr int kNotFound = 127;  // env's and the shell's exit code for a program that is not there

std::string interpreter() {
  const char* chosen = std::getenv("LONGCA_PYTHON");
  return chosen != nullptr && *chosen != '\0' ? chosen : "python3";
}

/// The interpreter as the subject of a sentence.
std::string named_interpreter() {
  const std::string name = interpreter();
  return name == "python3" ? "Python" : fmt::format("LONGCA_PYTHON = '{}'", name);
}

/// The start of a command: Python with one of the program's libraries.
std::vector<std::string> python_with(const char* library) {
  const fs::path folder = program_directory();
  return {"/usr/bin/env", interpreter(),   "-u", folder / "python" / "host.py",
          "--library",    folder / library};
}

ProcessAnswer ask(const char* question, const std::vector<std::string>& plugins,
                  double limit_s = kAnswerLimit) {
  std::vector<std::string> command = python_worker_command(plugins);
  command.emplace_back(question);
  ProcessAnswer answer = ask_process(command, limit_s);
  if (answer.exit_code == kNotFound) {
    answer.why = fmt::format(
        "cannot be started: there is no program '{}'; install Python 3.9 or later, or name one by "
        "LONGCA_PYTHON",
        interpreter());
  }
  return answer;
}

/// A key of a description, or `standard` without it; the type that it must have is that of
/// `standard`.
template <typename T>
T value_of(const json& description, const char* key, T standard) {
  const auto found = description.find(key);
  if (found == description.end()) return standard;
  try {
    return found->get<T>();
  } catch (const json::exception&) {
    throw_input_error("its capabilities have '{}' = {}, which is not of the right type", key,
                      found->dump());
  }
}

std::vector<DType> dtypes_of(const json& description) {
  std::vector<DType> dtypes;
  for (const auto& name : value_of(description, "dtypes", std::vector<std::string>{"float32"})) {
    const auto dtype = parse_dtype(name);
    if (!dtype) throw_input_error("its capabilities name an unknown dtype '{}'", name);
    dtypes.push_back(*dtype);
  }
  return dtypes;
}

DeviceKind device_of(const json& description) {
  const auto name = value_of(description, "device", std::string("cpu"));
  for (const DeviceKind kind : {DeviceKind::cpu, DeviceKind::cuda}) {
    if (to_string(kind) == name) return kind;
  }
  throw_input_error("its capabilities have device = '{}', which is neither 'cpu' nor 'cuda'", name);
}

void refuse_unknown_keys(const json& description) {
  static const std::vector<std::string> known{
      "name",        "description",  "origin",      "device",           "dtypes",
      "head_dims",   "value_dims",   "gqa",         "backward",         "deterministic",
      "returns_lse", "static_masks", "block_masks", "gradient_of_parts"};
  for (const auto& [key, value] : description.items()) {
    if (std::ranges::find(known, key) == known.end()) {
      throw_input_error("its capabilities have an unknown key '{}'{}", key, suggestion(key, known));
    }
  }
}

}  // namespace

std::vector<std::string> python_worker_command(const std::vector<std::string>& plugins) {
  std::vector<std::string> command = python_with("liblongca_host.so");
  for (const std::string& plugin : plugins) {
    command.insert(command.end(), {"--plugin", fs::absolute(plugin).string()});
  }
  return command;
}

std::vector<std::string> python_rank_command() {
  return python_with("liblongca_rank.so");
}

bool wants_python(const std::vector<std::string>& plugins, std::span<const Case> cases, bool gpus) {
  if (std::ranges::any_of(plugins, is_python_plugin)) return true;
  return std::ranges::any_of(cases, [&](const Case& c) {
    const Kernel& kernel = KernelRegistry::global().find(c.kernel, c.problem().device);
    return needs_python(kernel) && (gpus || kernel.capabilities().device == DeviceKind::cpu);
  });
}

void add_cases_ahead(std::vector<std::string>& command, std::span<const Case> cases) {
  std::set<std::string> distinct;
  for (Case c : cases) {
    if (!needs_python(KernelRegistry::global().find(c.kernel, c.problem().device))) continue;
    c.mode = Case{}.mode;
    distinct.insert(json(c).dump());
  }
  if (distinct.empty()) return;
  // Lives as long as this process, where its workers find it; the one that has compiled empties it,
  // so that the next need not.
  const int file = ::memfd_create("longca-cases-ahead", MFD_CLOEXEC);
  if (file < 0) return;  // nothing but time is lost
  const std::string text = fmt::format("[{}]", fmt::join(distinct, ","));
  if (::write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size())) return;
  command.insert(command.end(), {"--ahead", fmt::format("/proc/{}/fd/{}", ::getpid(), file)});
}

const Support& python_available() {
  static const Support support = [] {
    const ProcessAnswer answer = ask("--describe", {});
    if (answer.message) return Support{};
    return Support::unavailable(named_interpreter() + " " + answer.why);
  }();
  return support;
}

void survey_python_rows() {
  const ProcessAnswer answer = ask("--survey", {});
  if (!answer.message) return set_python_unavailable(named_interpreter() + " " + answer.why);
  for (const auto& [name, row] : answer.message->at("rows").items()) {
    set_python_row(name,
                   {row.at("reason").get<std::string>(), row.at("version").get<std::string>()});
  }
}

void load_python_plugin(const std::string& file, double limit_s) {
  const ProcessAnswer answer = ask("--describe", {file}, limit_s);
  if (!answer.message)
    throw_input_error("plug-in '{}': {} {}", file, named_interpreter(), answer.why);
  const json& message = *answer.message;
  if (message.contains("error")) {
    throw_input_error("plug-in '{}' {}", file, message.at("error").get<std::string>());
  }
  try {
    for (const json& kernel : message.at("kernels")) add_python_kernel(kernel);
  } catch (const InputError& error) {
    throw_input_error("plug-in '{}': {}", file, error.what());
  }
}

void add_python_kernel(const json& description) {
  if (!description.is_object()) throw_input_error("its capabilities are no dict");
  refuse_unknown_keys(description);
  Capabilities can;
  can.name = value_of(description, "name", std::string());
  if (can.name.empty()) throw_input_error("its capabilities have no 'name'");
  can.description = value_of(description, "description", std::string("a plug-in in Python"));
  can.origin = value_of(description, "origin", std::string("plug-in"));
  can.device = device_of(description);
  can.dtypes = dtypes_of(description);
  can.head_dims = value_of(description, "head_dims", std::vector<int>());
  can.value_dims = value_of(description, "value_dims", false);
  can.gqa = value_of(description, "gqa", true);
  can.backward = value_of(description, "backward", true);
  can.deterministic = value_of(description, "deterministic", false);
  can.returns_lse = value_of(description, "returns_lse", true);
  can.static_masks = value_of(description, "static_masks", true);
  can.block_masks = value_of(description, "block_masks", true);
  can.gradient_of_parts = value_of(description, "gradient_of_parts", true);
  can.accumulate = false;
  KernelRegistry::global().add(make_python_kernel({std::move(can), ""}));
}

}  // namespace longca
