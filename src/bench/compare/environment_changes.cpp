#include "bench/compare/environment_changes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <unordered_set>

#include "bench/build_info.h"

namespace longca {
namespace {

using nlohmann::json;
/// The values that records have of each item, by the item's name.
using Items = std::map<std::string, std::set<std::string>>;

void add_item(Items& items, const std::string& name, const json& value) {
  if (value.is_string()) {
    items[name].insert(value.get<std::string>());
  } else if (value.is_primitive() && !value.is_null()) {
    items[name].insert(value.dump());
  }
}

void add_at(Items& items, const json& env, const std::string& name, const char* pointer) {
  const json::json_pointer place(pointer);
  if (env.contains(place)) add_item(items, name, env.at(place));
}

/// Entries of an object, "library fmt": "9.1".
void add_entries(Items& items, const json& env, const char* key, const std::string& prefix) {
  const auto found = env.find(key);
  if (found == env.end() || !found->is_object()) return;
  for (const auto& [name, value] : found->items()) add_item(items, prefix + name, value);
}

/// In how many numbers a machine has each kind of card: {"NVIDIA H200": {1, 4}}.
using Cards = std::map<std::string, std::set<int>>;

void add_cards(Cards& cards, const json& env) {
  const auto gpus = env.find("gpus");
  if (gpus == env.end() || !gpus->is_array() || gpus->empty()) return;
  std::map<std::string, int> models;
  for (const json& gpu : *gpus) {
    const bool named = gpu.is_object() && gpu.contains("model") && gpu.at("model").is_string();
    ++models[named ? gpu.at("model").get<std::string>() : "a GPU"];
  }
  if (models.size() == 1) {
    cards[models.begin()->first].insert(models.begin()->second);
    return;
  }
  std::string mixed;
  for (const auto& [model, count] : models) {
    const std::string number = count == 1 ? "" : fmt::format("{} × ", count);
    mixed += fmt::format("{}{}{}", mixed.empty() ? "" : " + ", number, model);
  }
  cards[mixed].insert(1);
}

/// "1, 2 or 4 × NVIDIA H200"; "NVIDIA H200" where it is always one.
std::string cards_text(const Cards& cards) {
  std::string text;
  for (const auto& [model, counts] : cards) {
    if (!text.empty()) text += "; ";
    std::string numbers;
    for (const int count : counts) {
      const bool is_last = count == *counts.rbegin();
      numbers += fmt::format("{}{}", numbers.empty() ? "" : is_last ? " or " : ", ", count);
    }
    text += numbers == "1" ? model : fmt::format("{} × {}", numbers, model);
  }
  return text;
}

constexpr std::pair<const char*, const char*> kPlaces[] = {
    {"processor", "/cpu/model"},
    {"cores", "/cpu/cores_usable"},
    {"driver", "/gpu_driver"},
    {"version", "/version"},
    {"commit", "/commit"},
    {"local changes", "/dirty"},
    {"compiler", "/compiler"},
    {"build", "/build_type"},
    {"sanitizer", "/sanitize"},
    {"kernel", "/kernel"},
    {"cache flush bytes", "/cpu/cache_flush_bytes"}};

Items items_of(std::span<const Record> records) {
  Items items;
  Cards cards;
  std::unordered_set<std::size_t> seen;
  for (const Record& record : records) {
    if (!record.env->is_object() || !seen.insert(std::hash<json>{}(record.env)).second) continue;
    for (const auto& [name, pointer] : kPlaces) add_at(items, record.env, name, pointer);
    add_cards(cards, record.env);
    add_entries(items, record.env, "libraries", "library ");
    add_entries(items, record.env, "plugins", "plug-in ");
  }
  if (!cards.empty()) items["card"].insert(cards_text(cards));
  std::set<std::string> commits;
  for (const std::string& commit : items["commit"]) commits.insert(short_commit(commit));
  items["commit"] = std::move(commits);
  return items;
}

}  // namespace

std::vector<EnvironmentChange> environment_changes(std::span<const Record> base,
                                                   std::span<const Record> next) {
  const Items was = items_of(base);
  const Items is = items_of(next);
  std::vector<std::string> names{"card"};
  for (const auto& [name, pointer] : kPlaces) names.emplace_back(name);
  std::set<std::string> entries;
  for (const Items* items : {&was, &is}) {
    for (const auto& [name, values] : *items) entries.insert(name);
  }
  for (const std::string& name : entries) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  const auto text = [](const Items& items, const std::string& name) {
    const auto found = items.find(name);
    return found == items.end() ? std::string() : fmt::format("{}", fmt::join(found->second, ", "));
  };
  std::vector<EnvironmentChange> changes;
  for (const std::string& name : names) {
    EnvironmentChange change{name, text(was, name), text(is, name)};
    if (change.base != change.next) changes.push_back(std::move(change));
  }
  return changes;
}

}  // namespace longca
