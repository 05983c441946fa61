#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/build_info.h"
#include "bench/record/environment.h"
#include "core/printable.h"
#include "report/format.h"
#include "report/table.h"
#include "verbs.h"

namespace longca {
namespace {

using nlohmann::json;

json tools_json() {
  json tools = json::object();
  for (const Tool& tool : find_tools()) {
    json& entry = tools[tool.name];
    entry["used_for"] = tool.used_for;
    entry["found"] = !tool.path.empty();
    if (tool.path.empty()) {
      entry["install"] = tool.install;
    } else {
      entry["path"] = tool.path.string();
    }
  }
  return tools;
}

std::string text_or(const json& object, const char* key, const char* otherwise) {
  const auto found = object.find(key);
  return found == object.end() ? otherwise : found->get<std::string>();
}

std::string gibibytes(const json& memory, const char* key, const char* otherwise) {
  const auto found = memory.find(key);
  if (found == memory.end()) return otherwise;
  return fmt::format("{:.1f} GiB", found->get<double>() / (1 << 30));
}

std::string gpu_text(const json& env) {
  const json& gpus = env.at("gpus");
  if (gpus.empty()) return "none found";
  std::string text;
  for (const json& gpu : gpus) {
    text += (text.empty() ? "" : ", ") + gpu.at("model").get<std::string>();
  }
  return fmt::format("{} (driver {})", text, text_or(env, "gpu_driver", "unknown"));
}

void row(const char* name, const std::string& value) {
  constexpr int kIndent = 12;
  const std::string line = fmt::format("{:<{}}{}", name, kIndent, value);
  fmt::print("{}\n", with_hanging_indent(line, terminal_table_options().width, kIndent));
}

void print_environment() {
  const json& env = collect_environment();
  const json& cpu = env.at("cpu");
  const json& memory = env.at("memory");
  row("longca", fmt::format("{} ({}{}, {} build)", env.at("version").get<std::string>(),
                            short_commit(env.at("commit")),
                            env.at("dirty").get<bool>() ? " with local changes" : "",
                            env.at("build_type").get<std::string>()));
  row("compiler", env.at("compiler").get<std::string>());
  row("system", fmt::format("{}, kernel {}, {}", text_or(env, "os", "unknown"),
                            text_or(env, "kernel", "unknown"), text_or(env, "arch", "unknown")));
  row("CPU", fmt::format("{}, {} of {} cores usable, SIMD {}", text_or(cpu, "model", "unknown"),
                         cpu.at("cores_usable").get<int>(), cpu.at("cores_online").get<int>(),
                         cpu.at("simd").get<std::string>()));
  row("memory",
      fmt::format("{} of {} available, cgroup limit {}", gibibytes(memory, "available_bytes", "?"),
                  gibibytes(memory, "total_bytes", "?"),
                  gibibytes(memory, "cgroup_limit_bytes", "none")));
  row("GPU", gpu_text(env));
  std::string libraries;
  for (const auto& [name, version] : env.at("libraries").items()) {
    libraries +=
        fmt::format("{}{} {}", libraries.empty() ? "" : ", ", name, version.get<std::string>());
  }
  row("libraries", libraries);
  for (const Tool& tool : find_tools()) {
    row(tool.name.c_str(), tool.path.empty()
                               ? fmt::format("missing ({}): {}", tool.used_for, tool.install)
                               : tool.path.string());
  }
}

}  // namespace

void add_env(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("env", "What this machine has, and what it lacks");
  auto as_json = std::make_shared<bool>(false);
  verb->add_flag("--json", *as_json, "one JSON object: the records' env and the tools");
  verb->footer("Example: longca env --json");
  verb->callback([as_json] {
    if (!*as_json) return print_environment();
    json env = collect_environment();
    env["tools"] = tools_json();
    fmt::print("{}\n", printable_json(env.dump(2, ' ', false, json::error_handler_t::replace)));
  });
}

}  // namespace longca
