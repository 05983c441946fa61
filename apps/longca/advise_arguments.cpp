#include "advise_arguments.h"

#include <string_view>
#include <utility>

#include "bench/suite/axis_values.h"
#include "bench/suite/suite.h"
#include "core/error.h"
#include "core/nearest.h"
#include "parallel/plan/rank_limits.h"

namespace longca {
namespace {

/// So many sequences of --documents are answered unless --samples says so; where each is simulated
/// at every degree, fewer.
constexpr std::int64_t kSamples = 64;
constexpr std::int64_t kSamplesOfDegrees = 4;

/// Above these no simulation ends in reasonable time.
constexpr std::int64_t kMaxLayers = 10'000;
constexpr std::int64_t kMaxTokensPerStep = std::int64_t{1} << 36;

advise::Objective objective_of(const std::string& name) {
  if (name == "time") return advise::Objective::time;
  if (name == "memory") return advise::Objective::memory;
  const std::vector<std::string> known{"time", "memory"};
  throw_input_error("unknown objective '{}'{}; there are time and memory", name,
                    suggestion(name, known));
}

std::vector<const advise::Need*> needs_of(const std::string& list) {
  std::vector<const advise::Need*> needs;
  if (list.empty()) return needs;
  for (const std::string_view name : split_list("--needs", list)) {
    needs.push_back(&advise::find_need(name));
  }
  return needs;
}

/// Sets an axis that has an option of its own.
void set_axis(const std::string& name, const std::string& value, AxisValues& given) {
  if (value.empty()) return;
  if (given.contains(name)) {
    throw_input_error("--{} and -a {}= say the same thing: give one of them", name, name);
  }
  parse_axis_argument(name + "=" + value, given);
}

/// The one count that an option was given; `standard` without it. Throws InputError.
std::int64_t count_of(const std::string& option, const std::string& text, std::int64_t high,
                      std::int64_t standard) {
  if (text.empty()) return standard;
  const auto counts = counts_between(option, 1, high)(text);
  if (counts.size() > 1) throw_input_error("{} {}: one number is asked for", option, text);
  return std::stoll(counts.front());
}

}  // namespace

AxisValues given_values(const AdviseArguments& arguments) {
  AxisValues given;
  for (const std::string& axis : arguments.axes) parse_axis_argument(axis, given);
  set_axis("pass", arguments.pass, given);
  set_axis("heads", arguments.heads, given);
  set_axis("dim", arguments.dim, given);
  if (!given.contains("pass")) parse_axis_argument("pass=step", given);
  if (arguments.deterministic) parse_axis_argument("deterministic=1", given);
  if (const auto device = given.find("device");
      device != given.end() && (device->second.size() > 1 || device->second.front() == kFound)) {
    throw InputError("device is cpu or cuda here: advice is for one card");
  }
  return given;
}

advise::AdviceOptions options_of(const AdviseArguments& arguments) {
  advise::AdviceOptions options;
  options.objective = objective_of(arguments.objective);
  options.needs = needs_of(arguments.needs);
  return options;
}

std::optional<advise::Training> training_of(const AdviseArguments& arguments) {
  if (arguments.gpus.empty()) {
    for (const auto& [option, value] :
         {std::pair("--layers", arguments.layers),
          std::pair("--tokens-per-step", arguments.tokens_per_step)}) {
      if (!value.empty())
        throw_input_error("{} {}: of how many GPUs? give --gpus N", option, value);
    }
    return std::nullopt;
  }
  if (arguments.objective != "time") {
    throw InputError("--gpus ranks degrees by time, and says what memory each takes");
  }
  return advise::Training{
      .gpus = count_of("--gpus", arguments.gpus, kMaxRanks, 1),
      .layers = count_of("--layers", arguments.layers, kMaxLayers, 1),
      .tokens_per_step =
          count_of("--tokens-per-step", arguments.tokens_per_step, kMaxTokensPerStep, 0)};
}

std::optional<AskedDocuments> documents_of(const AdviseArguments& arguments) {
  if (arguments.documents.empty()) {
    if (arguments.samples) {
      throw_input_error("--samples {}: of which sequences? give --documents FILE",
                        *arguments.samples);
    }
    return std::nullopt;
  }
  const std::int64_t standard = arguments.gpus.empty() ? kSamples : kSamplesOfDegrees;
  return AskedDocuments{arguments.documents, arguments.samples.value_or(standard)};
}

void check_evaluate(const AdviseArguments& arguments) {
  if (!arguments.evaluate) return;
  const std::pair<const char*, bool> of_problems[] = {
      {"--pass", !arguments.pass.empty()},
      {"--heads", !arguments.heads.empty()},
      {"--dim", !arguments.dim.empty()},
      {"--needs", !arguments.needs.empty()},
      {"--documents", !arguments.documents.empty()},
      {"--gpus", !arguments.gpus.empty()},
      {"--deterministic", arguments.deterministic},
      {"--measure", arguments.measure.has_value()},
      {"--samples", arguments.samples.has_value()},
      {"--objective", arguments.objective != "time"}};
  for (const auto& [option, is_given] : of_problems) {
    if (is_given) throw_input_error("--evaluate is of all records: leave {} out", option);
  }
  for (const std::string& axis : arguments.axes) {
    if (axis.starts_with("device=")) continue;  // which of the machine's records
    throw_input_error("--evaluate is of all records: leave -a {} out", axis);
  }
}

void check_measure(const AdviseArguments& arguments, const AxisValues& given) {
  if (!arguments.measure) {
    if (!arguments.out.empty()) {
      throw_input_error("--out {}: only --measure SECONDS writes records", arguments.out);
    }
    return;
  }
  constexpr double kMostSeconds = 86'400;
  if (!(*arguments.measure > 0 && *arguments.measure <= kMostSeconds)) {
    throw_input_error("--measure {}: seconds above 0 and at most {} are asked for",
                      *arguments.measure, kMostSeconds);
  }
  if (axis_of_ranks(given) || !arguments.gpus.empty()) {
    throw InputError(
        "--measure runs kernels on one device: over ranks run what `to find out` says");
  }
  if (!arguments.documents.empty()) {
    throw InputError(
        "--measure runs problems that `bench` can name: give a sequence of your own as "
        "-a lengths=FILE instead of --documents");
  }
}

}  // namespace longca
