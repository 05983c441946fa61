#include "bench/record/origin.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>
#include <utility>

#include "bench/build_info.h"
#include "core/device.h"
#include "core/error.h"
#include "core/output_file.h"

namespace longca {
namespace {

using nlohmann::json;

/// The text or number at a path of keys in an object that may hold anything; "" if there is none.
std::string text_at(const json& env, std::initializer_list<const char*> path) {
  const json* value = &env;
  for (const char* key : path) {
    const auto found = value->is_object() ? value->find(key) : value->end();
    if (found == value->end()) return "";
    value = &*found;
  }
  if (value->is_string()) return value->get<std::string>();
  return value->is_number() ? value->dump() : "";
}

std::string gpus_of(const json& env) {
  const auto gpus = env.is_object() ? env.find("gpus") : env.end();
  std::string text;
  if (gpus == env.end() || !gpus->is_array()) return text;
  for (const json& gpu : *gpus) {
    const std::string model = text_at(gpu, {"model"});
    text += fmt::format(", {}", model.empty() ? "a GPU" : model);
  }
  const std::string driver = text_at(env, {"gpu_driver"});
  return text.empty() || driver.empty() ? text : fmt::format("{} (driver {})", text, driver);
}

/// "AMD EPYC 9R14, 2 cores"; `unnamed` in place of a model that the environment does not name.
std::string cpu_of(const json& env, const char* unnamed) {
  const std::string model = text_at(env, {"cpu", "model"});
  const std::string cores = text_at(env, {"cpu", "cores_usable"});
  std::string text = model.empty() ? unnamed : model;
  if (cores.empty()) return text;
  return text +
         fmt::format("{}{} core{}", text.empty() ? "" : ", ", cores, cores == "1" ? "" : "s");
}

std::string machine_of(const json& env) {
  return cpu_of(env, "unknown") + gpus_of(env);
}

std::string build_of(const json& env) {
  const std::string version = text_at(env, {"version"});
  const std::string commit = text_at(env, {"commit"});
  if (version.empty() && commit.empty()) return "unknown";
  std::string text = version;
  if (!commit.empty()) text += fmt::format(", commit {}", short_commit(commit));
  if (env.is_object() && env.contains("dirty") && env.at("dirty") == true)
    text += " with local changes";
  if (const auto type = text_at(env, {"build_type"}); !type.empty()) {
    text += fmt::format(", {} build", type);
  }
  if (const auto sanitize = text_at(env, {"sanitize"}); !sanitize.empty()) text += ", " + sanitize;
  return text;
}

bool holds(const std::map<std::string, std::string>& all,
           const std::map<std::string, std::string>& some) {
  return std::ranges::includes(all, some);
}

std::string list_of(const std::map<std::string, std::string>& plugins) {
  std::string text;
  for (const auto& [name, hash] : plugins) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, hash);
  }
  return text;
}

std::string changed(const char* what, const std::string& was, const std::string& is) {
  return was == is ? "" : fmt::format("the {} was {} and is {}", what, was, is);
}

std::string key_of_each_host(const Record& record) {
  return fmt::format("{}\n{}", record.c.key(), machine_of(record.env));
}

std::string key_of_each_build(const Record& record) {
  return fmt::format("{}\n{}", key_of_each_host(record), build_of(record.env));
}

}  // namespace

Origin origin_of(const json& env) {
  Origin origin{machine_of(env), build_of(env), {}};
  const auto plugins = env.is_object() ? env.find("plugins") : env.end();
  if (plugins == env.end() || !plugins->is_object()) return origin;
  for (const auto& [name, hash] : plugins->items()) {
    if (hash.is_string()) origin.plugins[name] = hash.get<std::string>();
  }
  return origin;
}

std::string processor_of_case(const Record& record) {
  if (record.c.device == "cpu") return cpu_of(record.env, "");
  const auto gpus = record.env->is_object() ? record.env->find("gpus") : record.env->end();
  const bool has_gpu = gpus != record.env->end() && gpus->is_array() && !gpus->empty();
  return has_gpu ? text_at(gpus->front(), {"model"}) : "";
}

std::string machine_of_case(const Record& record) {
  std::string model = processor_of_case(record);
  if (record.c.device == "cpu") return model;
  const std::string driver = text_at(record.env, {"gpu_driver"});
  return model.empty() || driver.empty() ? model : fmt::format("{}, driver {}", model, driver);
}

std::string host_of(const Record& record) {
  return machine_of(record.env);
}

std::vector<Record> latest_of_each_build(std::span<const Record> records) {
  return latest_records(records, key_of_each_build);
}

std::vector<Record> latest_of_each_host(std::span<const Record> records) {
  return latest_records(records, key_of_each_host);
}

std::vector<Record> latest_of_file(std::span<const Record> records) {
  std::unordered_map<std::string, const Record*> last_of_host, last_of_build;
  for (const Record& record : records) {
    last_of_host[key_of_each_host(record)] = last_of_build[key_of_each_build(record)] = &record;
  }
  std::vector<Record> counting;
  for (const Record& record : records) {
    const Record* last = last_of_build.at(key_of_each_build(record));
    const bool is_replaced = last->status.code == StatusCode::timeout &&
                             last != last_of_host.at(key_of_each_host(record));
    if (!is_replaced) counting.push_back(record);
  }
  return latest_of_each_build(counting);
}

json describe_plugins(std::span<const std::string> files) {
  json plugins = json::object();
  for (const std::string& file : files) {
    std::ifstream in(file, std::ios::binary);
    if (!in) throw_file_error("read", file, errno);
    const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    const auto size = static_cast<std::int64_t>(bytes.size());
    const std::uint64_t hash = Device::get(DeviceKind::cpu).hash(0, bytes.data(), size);
    plugins[std::filesystem::path(file).filename().string()] = fmt::format("{:016x}", hash);
  }
  return plugins;
}

std::string difference(const Origin& was, const Origin& is) {
  if (auto text = changed("machine", was.machine, is.machine); !text.empty()) return text;
  if (auto text = changed("build", was.build, is.build); !text.empty()) return text;
  if (holds(was.plugins, is.plugins) || holds(is.plugins, was.plugins)) return "";
  return changed("plug-in", list_of(was.plugins), list_of(is.plugins));
}

namespace {

using Plugins = std::map<std::string, std::string>;

/// The origins of one machine and build, by what two that do not differ have in common: the whole
/// of one's plug-ins is among the other's. Files of many thousand environments are read in a
/// moment.
class AlikeOrigins {
 public:
  void add(const Plugins& plugins, std::size_t origin) {
    all_.push_back(origin);
    if (plugins.empty()) without_plugins_.push_back(origin);
    for (const auto& plugin : plugins) by_plugin_[plugin].push_back(origin);
  }

  /// The first that does not differ; `plugins_of` gives the plug-ins of an origin.
  template <typename PluginsOf>
  std::optional<std::size_t> find(const Plugins& plugins, const PluginsOf& plugins_of) const {
    std::optional<std::size_t> first;
    const auto look = [&](const std::vector<std::size_t>& candidates) {
      for (const std::size_t origin : candidates) {
        if (first && *first <= origin) return;
        const Plugins& own = plugins_of(origin);
        if (holds(own, plugins) || holds(plugins, own)) first = origin;
      }
    };
    look(plugins.empty() ? all_ : without_plugins_);
    for (const auto& plugin : plugins) {
      const auto found = by_plugin_.find(plugin);
      if (found != by_plugin_.end()) look(found->second);
    }
    return first;
  }

 private:
  std::vector<std::size_t> all_;  ///< ascending, as the others
  std::vector<std::size_t> without_plugins_;
  std::map<Plugins::value_type, std::vector<std::size_t>> by_plugin_;
};

}  // namespace

std::vector<OriginCells> origins_of(std::span<const Record> records) {
  std::vector<OriginCells> origins;
  std::map<std::pair<std::string, std::string>, AlikeOrigins> alike;
  for (const Record& record : records) {
    Origin origin = origin_of(record.env);
    AlikeOrigins& candidates = alike[{origin.machine, origin.build}];
    const auto known = candidates.find(
        origin.plugins, [&](std::size_t i) -> const Plugins& { return origins[i].origin.plugins; });
    if (known) {
      ++origins[*known].cells;
    } else {
      candidates.add(origin.plugins, origins.size());
      origins.push_back({std::move(origin), 1});
    }
  }
  return origins;
}

}  // namespace longca
