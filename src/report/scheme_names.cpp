#include "report/scheme_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tuple>

namespace longca {
namespace {

using Variant = std::tuple<std::string, std::string, std::string>;

Variant variant_of(const Case& c) {
  return {c.shard.value_or(""), c.factor ? std::to_string(*c.factor) : "",
          c.transport.value_or("")};
}

/// The key without the axes that distinguish variants.
std::string work_of(Case c) {
  c.shard.reset();
  c.factor.reset();
  c.transport.reset();
  return c.key();
}

/// "contiguous: ulysses; zigzag: ring_p2p, usp", or only the value if all schemes have the same.
std::string by_value(
    const std::map<std::string, std::set<std::string, std::less<>>, std::less<>>& by_scheme) {
  std::map<std::string, std::set<std::string, std::less<>>> schemes;
  bool all = true;
  for (const auto& [scheme, values] : by_scheme) {
    if (values.size() == 1) {
      schemes[*values.begin()].insert(scheme);
    } else {
      all = false;
    }
  }
  if (all && schemes.size() == 1) return schemes.begin()->first;
  std::string text;
  for (const auto& [value, of_value] : schemes) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", value, fmt::join(of_value, ", "));
  }
  return text;
}

}  // namespace

SchemeNames::SchemeNames(std::span<const Record> records) {
  std::map<std::string, Variant> first_of_work;
  for (const Record& record : records) {
    if (!record.c.scheme) continue;
    const std::string& scheme = *record.c.scheme;
    if (record.c.shard) shards_[scheme].insert(*record.c.shard);
    if (record.c.transport) transports_[scheme].insert(*record.c.transport);
    const Variant own = variant_of(record.c);
    const auto& first = first_of_work.try_emplace(work_of(record.c), own).first->second;
    const std::string& kernel = record.c.kernel;
    if (std::get<0>(own) != std::get<0>(first)) variants_.insert({"shard", kernel, scheme});
    if (std::get<1>(own) != std::get<1>(first)) variants_.insert({"factor", kernel, scheme});
    if (std::get<2>(own) != std::get<2>(first)) variants_.insert({"transport", kernel, ""});
  }
}

bool SchemeNames::varies(const std::map<std::string, Names, std::less<>>& by_scheme,
                         const Case& c) const {
  const auto found = by_scheme.find(*c.scheme);
  return found != by_scheme.end() && found->second.size() > 1;
}

std::string SchemeNames::row(const Case& c) const {
  if (!c.scheme) return "";
  std::string name = *c.scheme;
  const int ranks = c.ranks.value_or(1);
  if (c.factor && *c.factor > 0 && ranks % *c.factor == 0) {
    name += fmt::format(" {}x{}", *c.factor, ranks / *c.factor);
  } else if (c.factor) {
    name += fmt::format(" factor {}", *c.factor);
  }
  if (c.shard && varies(shards_, c)) name += ' ' + *c.shard;
  if (c.transport && varies(transports_, c)) name += ' ' + *c.transport;
  return name;
}

std::string SchemeNames::variant(const Case& c) const {
  if (!c.scheme) return "";
  std::string text;
  const auto add = [&](const char* axis, const std::string& scheme, const std::string& value) {
    if (variants_.contains({axis, c.kernel, scheme})) text += (text.empty() ? "" : ", ") + value;
  };
  add("shard", *c.scheme, c.shard.value_or("no shard"));
  add("factor", *c.scheme, c.factor ? fmt::format("factor {}", *c.factor) : "no factor");
  add("transport", "", c.transport.value_or("no transport"));
  return text;
}

std::string SchemeNames::shards() const {
  return by_value(shards_);
}

std::string SchemeNames::transports() const {
  return by_value(transports_);
}

std::vector<std::string> scheme_settings(std::span<const Record> records) {
  const SchemeNames names(records);
  std::vector<std::string> settings;
  if (!names.shards().empty()) settings.push_back("shard " + names.shards());
  if (!names.transports().empty()) settings.push_back("transport " + names.transports());
  return settings;
}

}  // namespace longca
