#include "run_options.h"

#include <cmath>

#include "bench/axes.h"
#include "bench/plugin_loader.h"
#include "core/error.h"

namespace longca {
namespace {

void set_limit(const char* option, const std::optional<double>& given, double& limit) {
  if (!given) return;
  if (!(std::isfinite(*given) && *given > 0))
    throw_input_error("{} {} is not above 0", option, *given);
  limit = *given;
}

}  // namespace

void RunArguments::add_options(CLI::App& verb) {
  verb.add_option("-a,--axis", axes, "values of an axis, as tokens=1K:8K:x2; repeatable")
      ->type_name("AXIS=LIST")
      ->allow_extra_args(false);
  verb.add_option("--plugin", plugins, "kernels from a .so or .py file; repeatable")
      ->type_name("FILE")
      ->allow_extra_args(false);
  verb.add_option("--case-limit", case_limit_s, "a cell that takes longer is `timeout`")
      ->type_name("S");
  verb.add_option("--memory-limit", memory_limit_mib, "a cell that takes more is `oom`")
      ->type_name("MIB");
  verb.add_flag("--quiet", quiet, "no progress");
}

Suite RunArguments::load() const {
  for (const std::string& plugin : plugins) load_plugin_safely(plugin);
  Suite chosen = load_suite(suite);
  AxisValues overrides;
  for (const std::string& axis : axes) parse_axis_argument(axis, overrides);
  override_axes(chosen, overrides);
  set_limit("--time-limit", time_limit_s, chosen.limits.time_limit_s);
  set_limit("--case-limit", case_limit_s, chosen.limits.case_limit_s);
  if (memory_limit_mib) {
    if (*memory_limit_mib < 1)
      throw_input_error("--memory-limit {} is not above 0", *memory_limit_mib);
    chosen.limits.memory_limit_mib = *memory_limit_mib;
  }
  return chosen;
}

Progress::Style RunArguments::progress_style() const {
  return quiet ? Progress::Style::silent : Progress::style_of_stderr();
}

void refuse_axes_of_ranks(const Suite& suite, std::string_view verb) {
  const auto axis = axis_of_ranks(suite.axes);
  if (!axis) return;
  throw_input_error("the axis '{}' is of cells over ranks, which {} does not run: use longca cp",
                    *axis, verb);
}

int exit_code_of_signal(int signal) {
  return 128 + signal;
}

}  // namespace longca
