#include "simulate/cluster.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>

#include "core/counted.h"
#include "core/error.h"
#include "core/input_file.h"
#include "core/nearest.h"
#include "core/parse.h"
#include "core/printable.h"
#include "core/rounding.h"
#include "core/strict_toml.h"
#include "simulate/cluster_fields.h"
#include "simulate/embedded_clusters.h"

namespace longca::simulate {
namespace {

constexpr double kMaxWholeFigure = std::numeric_limits<std::int32_t>::max();
constexpr double kMaxSms = 65536;  ///< a schedule is made of as many

/// What set_figure takes beside the keys of a page, in the units of data sheets.
struct ShortName {
  std::string_view name, key;
  double unit;  ///< of the key's figure, for 1 of the name's
};
constexpr ShortName kShortNames[] = {
    {"gpus_per_node", "node.gpus", 1},
    {"nic_gbps", "fabric.nic_bytes_per_second", 1e9 / 8},
};

/// The figures of without_effect; sections end with a dot.
constexpr std::string_view kWithoutEffect[] = {
    "node.covered_cost_across",
    "kernel.any.",
    "kernel.forward.",
    "kernel.backward.tile_flops_per_second",
    "kernel.backward.keys_per_row",
    "kernel.backward.seconds_per_call",
    "kernel.backward.seconds_per_half_heads_call",
    "slice.forward.min_unchecked_tiles",
    "slice.backward.ordered_slack_divisor",
    "slice.backward.ordered_cache_divisor",
    "slice.backward.max_unordered_write_tiles",
    "mma.",
    "product.",
    "launch.",
    "messages.",
    "error.",
    "error_by_rates.",
};

/// "; keys of links are bytes_per_second, …" of the section of an unknown key, else which sections
/// there are.
std::string keys_like(std::string_view key, std::span<const std::string> known) {
  const auto section_of = [](std::string_view name) {
    return name.substr(0, std::min(name.rfind('.'), name.size()));
  };
  std::vector<std::string_view> sections, short_names, alike;
  for (const std::string_view name : known) {
    if (name.ends_with(".measured")) continue;
    const std::string_view section = section_of(name);
    if (section == name) {
      short_names.push_back(name);
      continue;
    }
    if (sections.empty() || sections.back() != section) sections.push_back(section);
    if (section == section_of(key)) alike.push_back(name.substr(section.size() + 1));
  }
  if (!alike.empty()) {
    return fmt::format("; keys of {} are {}", section_of(key), fmt::join(alike, ", "));
  }
  return fmt::format("; keys are {} and, as in links.bytes_per_second, those of {}",
                     fmt::join(short_names, ", "), fmt::join(sections, ", "));
}

/// Sets the figure or text of one dotted key, and remembers the keys that there are.
class FigureSetter {
 public:
  FigureSetter(std::string_view key, double value) : key_(key), value_(value) {}
  FigureSetter(std::string_view key, std::string text) : key_(key), text_(std::move(text)) {}
  FigureSetter(const ShortName& short_name, double value)
      : key_(short_name.key), shown_(short_name.name), unit_(short_name.unit), value_(value) {}

  void section(const char* name, const char*, std::string& measured) {
    section_ = name;
    if (offer(section_ + ".measured", text_.has_value())) measured = *text_;
  }
  template <typename Number>
  void field(const char* key, const char*, Number& value) {
    if (!offer(section_ + "." + key, !text_)) return;
    if (!std::isfinite(value_ * unit_) || value_ <= 0) {
      throw_input_error("'{}' is {}, not a finite number above 0", shown(), value_);
    }
    if constexpr (std::is_same_v<Number, std::int64_t>) {
      if (value_ != std::floor(value_) || value_ > kMaxWholeFigure) {
        throw_input_error("'{}' is {}, not a whole number from 1 to {}", shown(), value_,
                          kMaxWholeFigure);
      }
    }
    value = static_cast<Number>(value_ * unit_);
  }

  void set(Cluster& cluster) {
    cost::visit_fields(cluster.platform, *this);
    cost::visit_optional_fields(cluster.platform, *this);
    visit_errors(cluster, *this);
    Fabric none;
    visit_fabric(cluster.fabric ? *cluster.fabric : none, *this);
    if (!found_) {
      if (lists_keys_) std::erase_if(known_, without_effect);
      throw_input_error("unknown key '{}'{}{}", key_, suggestion(key_, known_),
                        lists_keys_ ? keys_like(key_, known_) : "");
    }
    if (key_.starts_with("fabric.") && !cluster.fabric) {
      throw_input_error("'{}': the platform {} has no fabric, one node only", shown(),
                        cluster.name);
    }
  }
  /// Counts the short names among the keys, and lists these where one is unknown.
  void offer_short_names() {
    for (const ShortName& known : kShortNames) known_.emplace_back(known.name);
    lists_keys_ = true;
  }

 private:
  const std::string& shown() const { return shown_.empty() ? key_ : shown_; }

  bool offer(const std::string& name, bool fits) {
    known_.push_back(name);
    if (name != key_) return false;
    found_ = true;
    if (!fits) throw_input_error("'{}' is not a {}", key_, text_ ? "number" : "text");
    return true;
  }

  std::string key_;
  std::string shown_;  ///< what the caller calls the key, if something else
  double unit_ = 1;
  std::optional<std::string> text_;
  double value_ = 0;
  std::string section_;
  std::vector<std::string> known_;
  bool found_ = false;
  bool lists_keys_ = false;
};

/// "KEY=VALUE" of figures with effect.
class FigureText {
 public:
  explicit FigureText(std::string& text) : text_(text) {}
  void section(const char* name, const char*, const std::string&) { section_ = name; }
  template <typename Number>
  void field(const char* key, const char*, const Number& value) {
    const std::string name = section_ + "." + key;
    if (!without_effect(name)) text_ += fmt::format("{}={}\n", name, value);
  }

 private:
  std::string& text_;
  std::string section_;
};

/// Throws InputError for the first figure of a fabric that was not given.
class MissingFigure {
 public:
  void section(const char* name, const char*, const std::string& measured) {
    section_ = name;
    if (measured.empty()) throw_input_error("'{}.measured' is missing: a text", name);
  }
  template <typename Number>
  void field(const char* key, const char*, const Number& value) {
    if (value == 0) throw_input_error("'{}.{}' is missing: a number above 0", section_, key);
  }

 private:
  std::string section_;
};

std::string text_entry(const toml::table& page, const char* key) {
  const toml::node* node = page.get(key);
  if (node == nullptr) throw_input_error("'{}' is missing: a text", key);
  const auto value = node->value_exact<std::string>();
  if (!value) throw_input_error("'{}' is no text: a text in quotation marks is meant", key);
  return *value;
}

/// Sets what a table of the page says about keys that begin with `prefix`.
void set_table(Cluster& cluster, const toml::table& table, const std::string& prefix) {
  bool has_figures = false;
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string(key.str());
    if (prefix.empty() &&
        (name == "name" || name == "description" || name == "platform" || name == "card")) {
      continue;
    }
    if (const toml::table* inner = node.as_table()) {
      set_table(cluster, *inner, name + ".");
    } else if (const auto text = node.value_exact<std::string>()) {
      FigureSetter(name, *text).set(cluster);
    } else if (node.is_number()) {
      FigureSetter(name, *node.value<double>()).set(cluster);
      has_figures = true;
    } else {
      throw_input_error("'{}' is neither a number nor a text", name);
    }
  }
  if (has_figures && !table.contains("measured")) {
    throw_input_error("'{}measured' is missing: where these figures come from", prefix);
  }
}

Cluster node_of(cost::Platform platform) {
  Cluster cluster;
  cluster.name = platform.name;
  cluster.description = platform.description;
  cluster.card = platform.card.empty() ? platform.name : platform.card;
  cluster.platform = std::move(platform);
  return cluster;
}

/// Makes room for the rates of kernels that the page has and the platform lacks; their names.
std::vector<std::string> add_rates(Cluster& cluster, const toml::table& page) {
  std::vector<std::string> added;
  const toml::table* rates = page["rates"].as_table();
  if (rates == nullptr) return added;
  for (const auto& [kernel, passes] : *rates) {
    const toml::table* of_kernel = passes.as_table();
    if (of_kernel == nullptr) continue;
    added.emplace_back(kernel.str());
    cost::OneKernelRates& own = cluster.platform.rates[added.back()];
    if (of_kernel->contains("forward") && !own.forward) own.forward.emplace();
    if (of_kernel->contains("backward") && !own.backward) own.backward.emplace();
  }
  return added;
}

Cluster read_cluster(const toml::table& page) {
  Cluster cluster = node_of(cost::load_platform(text_entry(page, "platform")));
  cluster.name = text_entry(page, "name");
  cluster.description = text_entry(page, "description");
  if (page.contains("card")) cluster.card = text_entry(page, "card");
  if (page.contains("fabric")) cluster.fabric.emplace();
  const std::vector<std::string> added = add_rates(cluster, page);
  set_table(cluster, page, "");
  if (cluster.fabric) visit_fabric(*cluster.fabric, MissingFigure{});
  MissingFigure missing;
  for (const std::string& kernel : added) {
    const cost::OneKernelRates& own = cluster.platform.rates.at(kernel);
    cost::visit_pass_rates("rates." + kernel + ".forward", "", own.forward, missing);
    cost::visit_pass_rates("rates." + kernel + ".backward", "", own.backward, missing);
  }
  return cluster;
}

/// Throws InputError for figures that no time follows from: rates of slice on GPUs, whose calls are
/// timed by their lists, and an oversubscription below 1.
void refuse_figures_not_taken(const Cluster& cluster) {
  if (cluster.platform.kind == "cuda" && cluster.platform.rates.contains("slice")) {
    throw InputError(
        "'rates.slice' changes no simulated time: slice on GPUs is timed by slice.forward, "
        "slice.backward, call.forward and call.backward");
  }
  if (cluster.fabric && cluster.fabric->oversubscription < 1) {
    throw_input_error(
        "'fabric.oversubscription' is {}, not 1 or more: it is the rate of a node's NICs over that "
        "of its links to other nodes, 2 where these carry half",
        cluster.fabric->oversubscription);
  }
}

/// Throws InputError for a share that would leave a kernel no rate, or an interval no lower end,
/// for more SMs than a schedule can be made for, and for figures that are not taken.
void check_figures(const Cluster& cluster) {
  const auto below_one = [](const char* key, double share) {
    if (share >= 1) throw_input_error("'{}' is {}, not a share below 1", key, share);
  };
  if (const std::int64_t sms = cluster.platform.device.sms; static_cast<double>(sms) > kMaxSms) {
    throw_input_error("'device.sms' is {}, not a whole number from 1 to {}", sms, kMaxSms);
  }
  below_one("node.covered_cost_within", cluster.platform.node.covered_cost_within);
  below_one("node.memory_slowdown_within", cluster.platform.node.memory_slowdown_within);
  below_one("error.p90", cluster.error.p90);
  below_one("error_by_rates.p90", cluster.error_by_rates.p90);
  if (cluster.fabric) below_one("fabric.kernel_slowdown", cluster.fabric->kernel_slowdown);
  refuse_figures_not_taken(cluster);
}

/// As many NICs for each GPU as on the page, rounded up.
void scale_nics(Cluster& cluster) {
  if (cluster.page_nics == 0) return;
  constexpr auto kMaxNics = static_cast<std::int64_t>(kMaxWholeFigure);
  const std::int64_t gpus = cluster.platform.node.gpus;
  cluster.fabric->nics = std::min(ceil_div(cluster.page_nics * gpus, cluster.page_gpus), kMaxNics);
}

/// The cluster that `read` makes, checked; its errors name the page. Records hold the name, to
/// which figures set by hand add a hash.
template <typename Read>
Cluster checked(std::string_view path, Read&& read) {
  constexpr std::size_t kMaxName = 48;
  try {
    Cluster cluster = read();
    check_name("name", cluster.name);
    if (cluster.name.size() > kMaxName) {
      throw_input_error("name '{}' has {} characters, and at most {} fit", cluster.name,
                        cluster.name.size(), kMaxName);
    }
    check_figures(cluster);
    cluster.page_gpus = cluster.platform.node.gpus;
    cluster.page_nics = cluster.fabric ? cluster.fabric->nics : 0;
    return cluster;
  } catch (const InputError& error) {
    const std::string what = error.what();
    if (what.starts_with(path)) throw;
    throw_input_error("{}: {}", path, what);
  }
}

}  // namespace

void Cluster::require_ranks(std::int64_t ranks) const {
  if (ranks <= gpus()) return;
  throw_input_error("the platform {} has {}, and {} ranks are asked for", name,
                    counted(gpus(), "GPU"), ranks);
}

Cluster parse_cluster(std::string_view toml, std::string_view path) {
  const toml::table page = parse_strict_toml(toml, path);
  // A page that names no platform but a device is a platform's own: one node of it.
  if (!page.contains("platform") && (page.contains("device") || page.contains("kernel"))) {
    return checked(path, [&] { return node_of(cost::parse_platform(toml, path)); });
  }
  return checked(path, [&] { return read_cluster(page); });
}

std::vector<std::string> cluster_names() {
  std::vector<std::string> names;
  for (const cost::EmbeddedPage& page : embedded_clusters()) names.emplace_back(page.name);
  for (std::string& name : cost::platform_names()) names.push_back(std::move(name));
  return names;
}

Cluster load_cluster(const std::string& name) {
  if (name.ends_with(".toml")) {
    return parse_cluster(read_input_file("platform", name, kMaxTomlBytes), name);
  }
  for (const cost::EmbeddedPage& page : embedded_clusters()) {
    if (page.name == name) return parse_cluster(page.toml, name + ".toml");
  }
  const auto names = cluster_names();
  if (std::ranges::find(names, name) != names.end()) return node_of(cost::load_platform(name));
  cost::throw_unknown_platform(name, names);
}

void set_figure(Cluster& cluster, std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    throw_input_error("--set '{}' is not KEY=VALUE, as in node.gpus=4", text);
  }
  const std::string key(text.substr(0, equals));
  const double value = parse_number(key, text.substr(equals + 1));
  const auto* short_name = std::ranges::find(kShortNames, key, &ShortName::name);
  FigureSetter setter = short_name == std::end(kShortNames) ? FigureSetter(key, value)
                                                            : FigureSetter(*short_name, value);
  const std::string_view figure = short_name == std::end(kShortNames) ? key : short_name->key;
  setter.offer_short_names();
  setter.set(cluster);
  if (without_effect(key)) {
    throw_input_error("'{}' changes no simulated time: nothing that is simulated takes it", key);
  }
  if (figure == "fabric.nics") cluster.page_nics = 0;
  if (figure == "node.gpus") scale_nics(cluster);
  check_figures(cluster);
}

std::string scaled_nics(const Cluster& cluster) {
  if (cluster.page_nics == 0 || cluster.fabric->nics == cluster.page_nics) return "";
  return fmt::format("fabric.nics is {} with node.gpus={}: the page has {} for {}",
                     cluster.fabric->nics, cluster.platform.node.gpus, cluster.page_nics,
                     cluster.page_gpus);
}

bool without_effect(std::string_view key) {
  return std::ranges::any_of(kWithoutEffect, [&](std::string_view figure) {
    return figure.ends_with('.') ? key.starts_with(figure) : key == figure;
  });
}

std::string borrowed_links(const cost::Platform& platform) {
  constexpr std::string_view kBorrowed =
      ", not measured here";  // as calibrate::fit_platform writes
  const std::string& text = platform.links.measured;
  const std::size_t found = text.find(kBorrowed);
  return found == text.npos ? "" : text.substr(0, found + kBorrowed.size());
}

std::string figures_text(const Cluster& cluster) {
  std::string text;
  FigureText lister(text);
  cost::visit_fields(cluster.platform, lister);
  cost::visit_optional_fields(cluster.platform, lister);
  if (cluster.fabric) visit_fabric(*cluster.fabric, lister);
  return text;
}

}  // namespace longca::simulate
