#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "attention/api/registry.h"
#include "bench/launch/rank_machine.h"
#include "bench/plugin_loader.h"
#include "bench/python_host.h"
#include "bench/suite/axis_values.h"
#include "bench/suite/scheme_axes.h"
#include "bench/suite/suite.h"
#include "core/error.h"
#include "core/nearest.h"
#include "core/printable.h"
#include "kernel_survey.h"
#include "mask/generators.h"
#include "mask/lengths.h"
#include "parallel/schemes/scheme.h"
#include "report/format.h"
#include "report/table.h"
#include "usage.h"
#include "verbs.h"

namespace longca {
namespace {

using nlohmann::ordered_json;

/// "any", "9.0 or later", "9.0 only": compute capabilities of GPUs.
std::string architectures(const Capabilities& can) {
  const auto text = [](int architecture) {
    return fmt::format("{}.{}", architecture / 10, architecture % 10);
  };
  if (can.only_architecture != 0) return text(can.only_architecture) + " only";
  return can.min_architecture != 0 ? text(can.min_architecture) + " or later" : "any";
}

/// Asked only where the kernel's device is: a library of hundreds of MB may be loaded for it.
std::string version_here(const Kernel& kernel) {
  return Device::available(kernel.capabilities().device).ok() ? kernel.version() : "";
}

ordered_json kernels() {
  // Where there is no GPU, Python's packages make no difference.
  if (Device::available(DeviceKind::cuda).ok()) survey_python_rows();
  ordered_json rows = ordered_json::array();
  for (const auto& kernel : KernelRegistry::global().kernels()) {
    const Capabilities& can = kernel->capabilities();
    const KernelSurvey survey = survey_kernel(*kernel);
    ordered_json dtypes = ordered_json::array();
    for (const DType dtype : can.dtypes) dtypes.push_back(to_string(dtype));
    ordered_json dim_pairs = ordered_json::array();
    for (const DimPair& pair : can.dim_pairs) dim_pairs.push_back(to_string(pair));
    ordered_json passes = {"forward"};
    if (can.backward) passes.push_back("backward");
    rows.push_back({{"name", can.name},
                    {"description", can.description},
                    {"status", to_string(survey.support.code)},
                    {"reason", survey.support.reason},
                    {"device", to_string(can.device)},
                    {"architectures", architectures(can)},
                    {"dtypes", dtypes},
                    {"head_dims", can.head_dims},
                    {"value_dims", can.value_dims},
                    {"dim_pairs", dim_pairs},
                    {"gqa", can.gqa},
                    {"passes", passes},
                    {"deterministic", can.deterministic},
                    {"sinks", can.sinks},
                    {"softcap", can.softcap},
                    {"returns_lse", can.returns_lse},
                    {"masks", survey.masks},
                    {"origin", can.origin},
                    {"version", version_here(*kernel)}});
  }
  return rows;
}

ordered_json masks() {
  ordered_json rows = ordered_json::array();
  for (const MaskTraits& mask : mask_table()) {
    std::vector<std::string> axes;
    if (mask.uses_lengths) axes.emplace_back("lengths");
    if (mask.uses_seed) axes.emplace_back("seed");
    if (mask.uses_window) axes.emplace_back("window");
    if (mask.uses_block_tokens) axes.emplace_back("block_tokens");
    if (mask.uses_blocks)
      axes.insert(axes.end(),
                  {"heads", "block", "density", "block_heads", "block_causal", "selection"});
    rows.push_back({{"name", mask.name}, {"description", mask.description}, {"axes", axes}});
  }
  return rows;
}

ordered_json support_json(const Support& support) {
  return {{"status", to_string(support.code)}, {"reason", support.reason}};
}

/// Schemes run wherever a transport does.
ordered_json scheme_rows() {
  ordered_json transports = ordered_json::object();
  Support here = transport_here("mpi");
  for (const std::string& name : transport_names()) {
    const Support support = transport_here(name);
    transports[name] = support_json(support);
    if (support.ok()) here = {};
  }
  ordered_json rows = ordered_json::array();
  for (const auto& scheme : longca::schemes()) {
    rows.push_back({{"name", scheme->name()},
                    {"description", scheme->description()},
                    {"status", to_string(here.code)},
                    {"reason", here.reason},
                    {"paper", scheme->paper()},
                    {"published_shard", to_string(scheme->published_shard())},
                    {"best_shard", to_string(scheme->best_shard())},
                    {"factor", scheme->has_factor()},
                    {"passes", {"forward", "backward"}},
                    {"transports", transports}});
  }
  return rows;
}

/// Where an axis applies: "all cells", "cells over ranks", or the masks that depend on it.
std::string where(const Axis& axis) {
  if (axis.over_ranks) return "cells over ranks";
  if (axis.applies == nullptr) return "all cells";
  std::vector<std::string> masks;
  for (const MaskTraits& mask : mask_table()) {
    if (axis.applies(mask)) masks.push_back(mask.name);
  }
  return fmt::format("masks {}", fmt::join(masks, ", "));
}

/// The suites that verbs start from where -a is given without SUITE, by verb, as far as they can be
/// read: `list suites` gives the reason for another.
std::map<std::string, Suite> starting_suites() {
  std::map<std::string, Suite> suites;
  for (const auto& [verb, name] : {std::pair("bench", "quick"), std::pair("cp", "cp")}) {
    try {
      Suite suite = load_suite(name);
      drop_mask_axes(suite);
      suites.emplace(verb, std::move(suite));
    } catch (const std::runtime_error&) {  // InputError or SystemError
      continue;
    }
  }
  return suites;
}

/// The values that a suite gives the axis: "2048 or 8K" where an exception gives some cells others;
/// "" if it gives none.
std::string values_in(const Suite& suite, const Axis& axis) {
  DistinctTexts texts;
  const auto found = suite.axes.find(axis.name);
  if (found != suite.axes.end()) {
    const bool is_all = axis.names != nullptr && found->second == axis.names();
    texts.add(is_all ? "all" : fmt::format("{}", fmt::join(found->second, ", ")));
  }
  for (const SuiteException& exception : suite.exceptions) {
    const auto set = exception.set.find(axis.name);
    if (set != exception.set.end()) texts.add(set->second.front());
  }
  return fmt::format("{}", fmt::join(texts.take(), " or "));
}

/// The axes that -a takes. "default": the value where neither -a nor the suite gives one;
/// "without_suite": by verb what its starting suite gives, where that differs.
ordered_json axes() {
  const std::map<std::string, Suite> suites = starting_suites();
  ordered_json rows = ordered_json::array();
  for (const Axis* axis : named_axes()) {
    if (axis->set_by_verb) continue;
    ordered_json row{{"name", axis->name}, {"description", axis->help}, {"values", axis->values}};
    if (axis->names != nullptr) row["names"] = axis->names();
    row["default"] = axis->standard;
    row["without_suite"] = ordered_json::object();
    for (const auto& [verb, suite] : suites) {
      const std::string values = values_in(suite, *axis);
      if (!values.empty() && values != axis->standard) row["without_suite"][verb] = values;
    }
    row["where"] = where(*axis);
    rows.push_back(std::move(row));
  }
  return rows;
}

ordered_json lengths() {
  ordered_json rows = ordered_json::array();
  for (const std::string& name : length_distribution_names()) {
    rows.push_back({{"name", name}, {"description", describe_length_distribution(name)}});
  }
  return rows;
}

/// A suite that cannot be read is listed with the reason.
ordered_json suites() {
  ordered_json rows = ordered_json::array();
  for (const SuiteFile& file : available_suites()) {
    ordered_json row{{"name", file.name}};
    try {
      row["description"] = load_suite(file.name).description;
    } catch (const std::runtime_error& error) {  // InputError or SystemError
      row["description"] = fmt::format("cannot be read: {}", error.what());
    }
    row["path"] = file.path.string();
    rows.push_back(std::move(row));
  }
  return rows;
}

/// One of the things that can be listed.
struct Section {
  std::string_view name;
  std::string_view title;
  ordered_json (*rows)();
};

constexpr std::array kSections{
    Section{"kernels", "Kernels", kernels},
    Section{"masks", "Masks", masks},
    Section{"schemes", "Schemes of context parallelism", scheme_rows},
    Section{"axes", "Axes of `-a`", axes},
    Section{"lengths", "Distributions of document lengths", lengths},
    Section{"suites", "Suites of `bench` and `cp`", suites},
};

std::string joined(const ordered_json& values) {
  return printable(fmt::format("{}", fmt::join(values.get<std::vector<std::string>>(), ", ")));
}

constexpr int kIndent = 26;  ///< of descriptions and details

/// Prints a line of details, wrapped to the terminal.
void print_details(const std::string& text) {
  const std::string line = std::string(kIndent, ' ') + text;
  fmt::print("{}\n", with_hanging_indent(line, terminal_table_options().width, kIndent));
}

void print_described(const std::string& name, const std::string& description) {
  const std::string line = fmt::format("  {:<{}}{}", name, kIndent - 2, description);
  fmt::print("{}\n", with_hanging_indent(line, terminal_table_options().width, kIndent));
}

void print_kernel_details(const ordered_json& row) {
  const auto text = [&](const char* key) { return printable(row.at(key).get<std::string>()); };
  if (row.at("status") != "ok") print_details("does not run here: " + text("reason"));
  std::string device = text("device");
  if (text("architectures") != "any") device += " " + text("architectures");
  std::string origin = text("origin");
  if (!text("version").empty()) origin += " (" + text("version") + ")";
  print_details(fmt::format("{}; {}; {}; {}; from: {}", device, joined(row.at("dtypes")),
                            joined(row.at("passes")), row.at("gqa").get<bool>() ? "GQA" : "no GQA",
                            origin));
  const bool all_masks = row.at("masks").size() == mask_table().size();
  print_details("masks: " + (all_masks ? "all" : joined(row.at("masks"))));
}

void print_scheme_details(const ordered_json& row) {
  const auto text = [&](const char* key) { return printable(row.at(key).get<std::string>()); };
  const std::string published = text("published_shard");
  const std::string best = text("best_shard");
  print_details(
      fmt::format("shard {}{}; {}",
                  published == best ? published : published + " as published, " + best + " is best",
                  row.at("factor").get<bool>() ? ", axis factor" : "", text("paper")));
}

void print_axis_details(const ordered_json& row) {
  const auto text = [&](const char* key) { return row.at(key).get<std::string>(); };
  const std::string standard = text("default");
  std::string values = row.contains("names") ? joined(row.at("names")) : text("values");
  if (!standard.empty()) values += "; default " + standard;
  if (!values.empty()) print_details(values);
  for (const auto& [verb, given] : row.at("without_suite").items()) {
    print_details(fmt::format("{} without SUITE: {}", verb, given.get<std::string>()));
  }
  if (text("where") != "all cells") print_details(text("where"));
}

/// What carries messages here, and what does not.
void print_transports(const ordered_json& schemes) {
  for (const auto& [name, support] : schemes.at(0).at("transports").items()) {
    const bool runs = support.at("status") == "ok";
    print_described(
        "transport " + name,
        runs ? "runs here"
             : "does not run here: " + printable(support.at("reason").get<std::string>()));
  }
}

void print_section(const Section& section) {
  const ordered_json rows = section.rows();
  fmt::print("{}\n", section.title);
  for (const ordered_json& row : rows) {
    print_described(printable(row.at("name").get<std::string>()),
                    printable(row.at("description").get<std::string>()));
    if (section.name == "kernels") print_kernel_details(row);
    if (section.name == "schemes") print_scheme_details(row);
    if (section.name == "axes") print_axis_details(row);
  }
  if (section.name == "schemes") print_transports(rows);
}

const Section& find_section(const std::string& name) {
  for (const Section& section : kSections) {
    if (section.name == name) return section;
  }
  const auto known = listable();
  throw_input_error("'{}' cannot be listed{}; what can is {}", name, suggestion(name, known),
                    fmt::join(known, ", "));
}

/// A plug-in's texts may be anything.
void print_json(const ordered_json& json) {
  fmt::print("{}\n",
             printable_json(json.dump(2, ' ', false, ordered_json::error_handler_t::replace)));
}

void list(std::string what, bool as_json) {
  if (what == "all") what.clear();
  if (as_json && what.empty()) {
    ordered_json all;
    for (const Section& section : kSections) all[std::string(section.name)] = section.rows();
    print_json(all);
  } else if (as_json) {
    print_json(find_section(what).rows());
  } else if (what.empty()) {
    for (const Section& section : kSections) {
      if (&section != kSections.data()) fmt::print("\n");
      print_section(section);
    }
  } else {
    print_section(find_section(what));
  }
}

}  // namespace

std::vector<std::string> listable() {
  std::vector<std::string> names;
  names.reserve(kSections.size());
  for (const Section& section : kSections) names.emplace_back(section.name);
  return names;
}

void add_list(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("list", "Kernels, masks, … and what runs on this machine");
  auto what = std::make_shared<std::string>();
  auto as_json = std::make_shared<bool>(false);
  auto plugins = std::make_shared<std::vector<std::string>>();
  verb->add_option("WHAT", *what, "kernels, masks, schemes, axes, lengths, suites; or all")
      ->type_name("");
  verb->add_flag("--json", *as_json, "an array of objects, or all arrays by name");
  add_plugin_option(*verb, *plugins);
  verb->footer("Example: longca list kernels");
  verb->callback([what, as_json, plugins] {
    for (const std::string& plugin : *plugins) describe_plugin(plugin);
    list(*what, *as_json);
  });
}

}  // namespace longca
