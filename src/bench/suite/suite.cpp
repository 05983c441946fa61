#include "bench/suite/suite.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "attention/api/registry.h"
#include "bench/data_directory.h"
#include "bench/suite/axis_values.h"
#include "core/error.h"
#include "core/input_file.h"
#include "core/nearest.h"
#include "core/output_file.h"
#include "core/strict_toml.h"
#include "mask/own_mask.h"

namespace longca {
namespace {

namespace fs = std::filesystem;

std::string read_suite(const fs::path& path) {
  return read_input_file("suite", path, kMaxTomlBytes);
}

fs::path configs_directory() {
  const char* chosen = std::getenv("LONGCA_CONFIGS");
  return chosen != nullptr ? fs::path(chosen) : data_directory() / "configs";
}

}  // namespace

std::vector<SuiteFile> available_suites() {
  std::vector<SuiteFile> suites;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(configs_directory(), error)) {
    if (entry.path().extension() == ".toml") suites.push_back({entry.path().stem(), entry.path()});
  }
  if (error) throw_file_error("read the suites of", configs_directory(), error.value());
  std::ranges::sort(suites, {}, &SuiteFile::name);
  return suites;
}

Suite load_suite(const std::string& name) {
  if (name.ends_with(".toml")) return parse_suite(read_suite(name), name);
  std::vector<std::string> names;
  for (const SuiteFile& suite : available_suites()) {
    if (suite.name == name) return parse_suite(read_suite(suite.path), suite.path);
    names.push_back(suite.name);
  }
  if (name.find('=') != std::string::npos) {
    throw_input_error("unknown suite '{}': values of an axis are given as -a {}", name, name);
  }
  for (const char* axis : {"mask", "kernel", "scheme"}) {
    const std::vector<std::string> values = find_axis(axis).names();
    if (std::ranges::find(values, name) == values.end()) continue;
    throw_input_error("unknown suite '{}'; {} is a {}: -a {}={}", name, name, axis, axis, name);
  }
  throw_input_error("unknown suite '{}'{}: {} has {}", name, suggestion(name, names),
                    configs_directory().string(),
                    names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
}

namespace {

/// The axes with the length of the masks of the user's own, unless they give one.
AxisValues with_own_length(AxisValues axes) {
  const auto masks = axes.find("mask");
  if (masks == axes.end() || axes.contains("tokens") || axes.contains(kTokensPerRank)) return axes;
  DistinctTexts tokens;
  for (const std::string& name : masks->second) {
    if (const OwnMask* own = find_own_mask(name)) {
      tokens.add(std::to_string(own->generated.mask.q_tokens()));
    }
  }
  if (auto values = tokens.take(); !values.empty()) axes["tokens"] = std::move(values);
  return axes;
}

bool does_nothing(const SuiteException& exception) {
  return exception.skip.empty() && exception.set.empty();
}

}  // namespace

void override_axes(Suite& suite, const AxisValues& by_hand) {
  const AxisValues axes = with_own_length(by_hand);
  AxisValues given = axes;  // with the other way to say the length
  if (axes.contains("tokens")) given.try_emplace(std::string(kTokensPerRank));
  if (axes.contains(kTokensPerRank)) given.try_emplace("tokens");
  for (const auto& [name, values] : given) {
    suite.axes.erase(name);
    for (SuiteException& exception : suite.exceptions) exception.set.erase(name);
  }
  for (const auto& [name, values] : axes) suite.axes[name] = values;
  suite.axes = with_own_length(std::move(suite.axes));
  std::erase_if(suite.exceptions, does_nothing);
}

void leave_out_what_cannot_run(Suite& suite, const AxisValues& by_hand) {
  if (!suite.only_what_runs || by_hand.contains("kernel")) return;
  const auto leave_out = [&](AxisValues when, const Support& answer) {
    if (!answer.ok()) suite.exceptions.push_back({std::move(when), answer.reason, {}});
  };
  const auto kernels = suite.axes.find("kernel");
  const std::vector<std::string> names =
      kernels != suite.axes.end() ? kernels->second : KernelRegistry::global().names();
  for (const DeviceKind kind : {DeviceKind::cpu, DeviceKind::cuda}) {
    const std::string device(to_string(kind));
    if (!by_hand.contains("device")) leave_out({{"device", {device}}}, Device::available(kind));
    for (const std::string& name : names) {
      const Kernel& kernel = KernelRegistry::global().find(name, kind);
      leave_out({{"kernel", {name}}, {"device", {device}}},
                check_kind(kernel.capabilities(), kind));
    }
  }
}

void drop_mask_axes(Suite& suite) {
  const auto is_of_masks = [](const auto& axis) {
    return find_axis(axis.first).applies != nullptr;
  };
  std::erase_if(suite.axes, is_of_masks);
  for (SuiteException& exception : suite.exceptions) std::erase_if(exception.set, is_of_masks);
  std::erase_if(suite.exceptions, does_nothing);
}

std::optional<std::string> axis_of_ranks(const AxisValues& axes) {
  for (const auto& [name, values] : axes) {
    if (find_axis(name).over_ranks) return name;
  }
  return std::nullopt;
}

}  // namespace longca
