#include "advise/advisor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "advise/degrees.h"
#include "advise/kernel_work.h"
#include "attention/api/registry.h"
#include "bench/plugin_loader.h"
#include "bench/suite/axes.h"
#include "core/error.h"
#include "mask/generators.h"
#include "report/data/repeat_command.h"
#include "report/format.h"

namespace longca::advise {
namespace {

constexpr std::array<std::string_view, 2> kKindsOfMask = {"slices", "blocks"};

std::string_view kind_of_mask(const Case& c) {
  return kKindsOfMask[c.block ? 1 : 0];
}

/// Cells of one series differ in the mask, its parameters, the length and the heads alone: one
/// model learns from them.
std::string series_of(const Case& c, std::string_view kind_of_mask) {
  std::string series(kind_of_mask);
  for (const Axis& axis : axis_table()) {
    constexpr std::array<std::string_view, 4> kOfModels = {"mask", "tokens", "heads", "seed"};
    const bool is_of_model =
        axis.applies != nullptr || std::ranges::find(kOfModels, axis.name) != kOfModels.end();
    if (is_of_model) continue;
    if (const auto text = axis.text(c)) series += " " + axis.name + "=" + *text;
  }
  return series;
}

/// The kernel of that name on the problem's device; nullptr if this program has none.
const Kernel* kernel_of(const std::string& name, DeviceKind device) {
  for (const auto& kernel : KernelRegistry::global().kernels()) {
    const Capabilities& capabilities = kernel->capabilities();
    if (capabilities.name == name && capabilities.device == device) return kernel.get();
  }
  return nullptr;
}

Case with_kernel(Case c, const std::string& kernel) {
  c.kernel = kernel;
  return c;
}

Case with_pass(Case c, Pass pass) {
  c.pass = pass;
  return canonical(std::move(c));
}

/// The interval of the cell's time, or that of another run of the kernel where it is wider.
Expected time_of(const EvidenceCell& cell) {
  const double ms = *cell.time_ms;
  Expected time{ms, ms * (1 - CellModel::kRunToRun), ms * (1 + CellModel::kRunToRun)};
  if (!cell.interval) return time;
  time.low = std::min(time.low, cell.interval->low);
  time.high = std::max(time.high, cell.interval->high);
  return time;
}

Expected sum_of(const Expected& a, const Expected& b) {
  return {a.value + b.value, a.low + b.low, a.high + b.high};
}

Expected elementwise_max(const Expected& a, const Expected& b) {
  return {std::max(a.value, b.value), std::max(a.low, b.low), std::max(a.high, b.high)};
}

/// Whether what happened in the cell would happen in a problem of `tokens` with these heads too.
bool rules_out(const EvidenceCell& cell, const Case& asked) {
  switch (cell.status.code) {
    case StatusCode::ok:
      return false;
    case StatusCode::oom:
    case StatusCode::timeout:
      return cell.c.tokens <= asked.tokens;
    case StatusCode::unsupported:
    case StatusCode::unavailable:
      return cell.c.heads_q == asked.heads_q && cell.c.heads_k == asked.heads_k;
    case StatusCode::wrong:
    case StatusCode::crash:
      return true;
  }
  return true;
}

/// Whether a kernel that takes the one form takes the other: windows of one side or two.
bool are_alike(MaskForm a, MaskForm b) {
  return a == b || (is_window(a) && is_window(b));
}

double distance_of_lengths(const Case& a, const Case& b) {
  return std::abs(std::log(static_cast<double>(a.tokens) / static_cast<double>(b.tokens)));
}

}  // namespace

std::string_view to_string(Basis basis) {
  switch (basis) {
    case Basis::measured:
      return "measured";
    case Basis::interpolated:
      return "interpolated";
    case Basis::simulated:
      return "simulated";
  }
  return "";
}

Choice measured_choice(const EvidenceCell& cell) {
  Choice choice{.c = cell.c, .time_ms = time_of(cell), .basis = Basis::measured};
  if (cell.peak_bytes) choice.peak_bytes = {*cell.peak_bytes, *cell.peak_bytes, *cell.peak_bytes};
  choice.files.insert(cell.file);
  return choice;
}

Choice step_of(const Case& step, const Choice& forward, const Choice& backward) {
  Choice both{.c = step,
              .time_ms = sum_of(forward.time_ms, backward.time_ms),
              .basis = std::max(forward.basis, backward.basis),
              .situation = std::max(forward.situation, backward.situation),
              .files = forward.files};
  if (forward.peak_bytes && backward.peak_bytes) {
    both.peak_bytes = elementwise_max(*forward.peak_bytes, *backward.peak_bytes);
  }
  both.files.insert(backward.files.begin(), backward.files.end());
  return both;
}

std::string name_of_choice(const Choice& choice) {
  const Case& c = choice.c;
  if (!c.scheme) return c.kernel;
  std::string name = *c.scheme + " " + c.kernel;
  if (c.shard) name += " " + *c.shard;
  if (c.factor) name += fmt::format(" factor {}", *c.factor);
  if (c.transport) name += " " + *c.transport;
  return name;
}

std::string failure_text(const EvidenceCell& cell) {
  return fmt::format("{} at {} tokens, heads {}:{}: {}", status_text(cell.status.code),
                     format_tokens(cell.c.tokens), cell.c.heads_q, cell.c.heads_k,
                     cell.status.reason);
}

std::string why_not_needed(const Case& c, const AdviceOptions& options) {
  if (!options.kernels.empty() && !options.kernels.contains(c.kernel)) {
    return std::string(kNotAskedFor);
  }
  const Kernel* known = kernel_of(c.kernel, c.problem().device);
  if (known == nullptr) return "";
  for (const Need* need : options.needs) {
    if (!need->has(known->capabilities())) {
      return fmt::format("{} (--needs {})", need->description, need->name);
    }
  }
  return "";
}

const Expected& figure_of(const Choice& choice, Objective objective) {
  return objective == Objective::memory ? *choice.peak_bytes : choice.time_ms;
}

void rank_choices(std::vector<Choice>& choices, Objective objective) {
  const auto figure = [&](const Choice& choice) -> const Expected& {
    return figure_of(choice, objective);
  };
  std::ranges::stable_sort(choices, {}, [&](const Choice& choice) {
    return std::pair(figure(choice).value, choice.time_ms.value);
  });
  for (Choice& choice : choices) {
    choice.tied = &choice != &choices.front() && figure(choice).low <= figure(choices.front()).high;
  }
}

Advisor::Advisor(const Evidence& evidence, MaskFacts& masks) : evidence_(evidence), masks_(masks) {
  const DeviceKind device = evidence.card().device == "cpu" ? DeviceKind::cpu : DeviceKind::cuda;
  for (const auto& kernel : KernelRegistry::global().kernels()) {
    if (kernel->capabilities().device == device) kernels_.push_back(kernel->capabilities().name);
  }
  std::set<std::string> known(kernels_.begin(), kernels_.end());
  for (const EvidenceCell& cell : evidence_.cells()) {
    if (cell.c.scheme) continue;
    by_series_[series_of(cell.c, kind_of_mask(cell.c))].push_back(&cell);
    if (known.insert(cell.c.kernel).second) kernels_.push_back(cell.c.kernel);
  }
}

std::string Advisor::why_excluded(const Case& c, const AdviceOptions& options) {
  if (std::string lacking = why_not_needed(c, options); !lacking.empty()) return lacking;
  // Before the mask's tiles are counted, which takes as long as there are many.
  if (const auto memory = evidence_.memory_bytes()) {
    if (std::string too_large = why_too_large(c, 1, *memory); !too_large.empty()) return too_large;
  }
  const Kernel* known = kernel_of(c.kernel, c.problem().device);
  return known == nullptr ? "" : masks_.refusal(*known, c);
}

std::string Advisor::nearest_failure(const Case& c) {
  const auto series = by_series_.find(series_of(c, kind_of_mask(c)));
  if (series == by_series_.end()) return "";
  const MaskForm form = masks_.form(c);
  // What a kernel cannot express of another mask of the same form, it cannot of this one.
  const auto tells = [&](const EvidenceCell& cell) {
    if (cell.c.mask == c.mask) return true;
    return form != MaskForm::other && form != MaskForm::blocks &&
           (cell.status.ok() || cell.status.code == StatusCode::unsupported);
  };
  const EvidenceCell* nearest = nullptr;
  const auto distance = [&](const EvidenceCell& cell) {
    return std::tuple(
        cell.c.mask != c.mask, cell.c.heads_q != c.heads_q || cell.c.heads_k != c.heads_k,
        cell.c.lengths != c.lengths || cell.c.window != c.window, distance_of_lengths(cell.c, c));
  };
  for (const EvidenceCell* cell : series->second) {
    if (!tells(*cell) || (nearest != nullptr && distance(*nearest) <= distance(*cell))) continue;
    if (const auto other = form_of(*cell); !other || !are_alike(*other, form)) continue;
    nearest = cell;
  }
  return nearest != nullptr && rules_out(*nearest, c) ? failure_text(*nearest) : "";
}

std::optional<MaskForm> Advisor::form_of(const EvidenceCell& cell) {
  try {
    return masks_.form(cell.c);
  } catch (const InputError&) {
    return std::nullopt;  // a mask of another user's own file
  }
}

Work Advisor::work_of(const Case& c) {
  return kernel_work(kernel_of(c.kernel, c.problem().device), c, masks_);
}

const Work& Advisor::work_of(const EvidenceCell& cell) {
  const auto found = works_.find(&cell);
  return found != works_.end() ? found->second
                               : works_.emplace(&cell, work_of(cell.c)).first->second;
}

const Advisor::Learned& Advisor::learned(const Case& c, Quantity quantity, bool own_path,
                                         std::span<const std::string_view> kinds_of_mask) {
  std::string key = quantity == Quantity::time ? "time" : "memory";
  if (own_path) key += " own path";
  for (const std::string_view kind : kinds_of_mask) key += " " + series_of(c, kind);
  if (const auto found = learned_.find(key); found != learned_.end()) return found->second;
  std::vector<ModelCell> cells;
  std::set<std::string> files;
  const auto learn = [&](const EvidenceCell& cell) {
    const auto value = quantity == Quantity::time ? cell.time_ms : cell.peak_bytes;
    if (!value || *value <= 0) return;
    try {
      Work work = work_of(cell);
      if (work.own_path != own_path) return;
      // What is known of one kind of masks alone tells nothing of the other.
      if (kinds_of_mask.size() > 1) work.planned_ms = 0;
      cells.push_back({cell.c, work, *value});
      files.insert(cell.file);
    } catch (const InputError&) {
      // A mask of another user's own file: nothing here says what its work is.
    }
  };
  std::vector<const EvidenceCell*> known;
  std::vector<const Case*> cases;
  for (const std::string_view kind : kinds_of_mask) {
    const auto series = by_series_.find(series_of(c, kind));
    if (series == by_series_.end()) continue;
    for (const EvidenceCell* cell : series->second) {
      known.push_back(cell);
      if (!works_.contains(cell)) cases.push_back(&cell->c);
    }
  }
  masks_.prepare(cases);
  for (const EvidenceCell* cell : known) learn(*cell);
  return learned_.emplace(key, Learned{CellModel(cells, quantity), std::move(files)}).first->second;
}

Advisor::Told Advisor::predict(const Case& c, Quantity quantity) {
  const std::string_view own[] = {kind_of_mask(c)};
  Work work = work_of(c);
  const Learned& of_own = learned(c, quantity, work.own_path, own);
  const auto told = of_own.model.predict(c, work);
  const bool other_blocks = c.block && told && told->situation == Situation::other_mask;
  if (told && !other_blocks) return {&of_own, told};
  const Learned& of_both = learned(c, quantity, work.own_path, kKindsOfMask);
  work.planned_ms = 0;  // as in what was learned
  return {&of_both, of_both.model.predict(c, work)};
}

Advisor::PassEstimate Advisor::estimate(const Case& c) {
  if (const EvidenceCell* cell = evidence_.find(c)) {
    if (!cell->status.ok()) return {.excluded = failure_text(*cell)};
    if (cell->time_ms) return {.choice = measured_choice(*cell)};
  }
  if (std::string failure = nearest_failure(c); !failure.empty()) return {.excluded = failure};
  const auto& [from, time] = predict(c, Quantity::time);
  if (!time) {
    return {.unknown =
                from->model.cells() == 0
                    ? fmt::format("no record of its {} pass in this shape", to_string(c.pass))
                    : fmt::format("only {} records of its {} pass in this shape, none like it",
                                  from->model.cells(), to_string(c.pass))};
  }
  Choice choice{.c = c,
                .time_ms = {time->value, time->low, time->high},
                .basis = Basis::interpolated,
                .situation = time->situation,
                .files = from->files};
  if (const auto peak = predict(c, Quantity::memory).prediction) {
    choice.peak_bytes = {peak->value, peak->low, peak->high};
  }
  return {.choice = std::move(choice)};
}

Advisor::PassEstimate Advisor::estimate_step(const Case& step) {
  const EvidenceCell* cell = evidence_.find(step);
  if (cell != nullptr && (!cell->status.ok() || cell->time_ms)) return estimate(step);
  PassEstimate forward = estimate(with_pass(step, Pass::forward));
  if (!forward.choice) return forward;
  PassEstimate backward = estimate(with_pass(step, Pass::backward));
  if (!backward.choice) return backward;
  return {.choice = step_of(step, *forward.choice, *backward.choice)};
}

Advice Advisor::advise(const Case& problem, const AdviceOptions& options) {
  Advice advice{.problem = problem};
  for (const std::string& kernel : kernels_) {
    const Case c = with_kernel(problem, kernel);
    if (std::string reason = why_excluded(c, options); !reason.empty()) {
      advice.excluded.push_back({kernel, std::move(reason)});
      continue;
    }
    PassEstimate found = c.pass == Pass::step ? estimate_step(c) : estimate(c);
    const auto memory = evidence_.memory_bytes();
    if (found.choice && memory && found.choice->peak_bytes &&
        found.choice->peak_bytes->low > *memory) {
      found.excluded =
          fmt::format("needs {}, and {} has {}", format_bytes(found.choice->peak_bytes->value),
                      evidence_.card().name, format_bytes(*memory));
    }
    if (found.choice && options.objective == Objective::memory && !found.choice->peak_bytes) {
      found.unknown = "no record tells its memory";
    }
    if (!found.excluded.empty()) {
      advice.excluded.push_back({kernel, std::move(found.excluded)});
    } else if (!found.unknown.empty()) {
      advice.unknown.push_back({kernel, std::move(found.unknown)});
    } else {
      advice.choices.push_back(std::move(*found.choice));
    }
  }
  for (const auto& kernel : KernelRegistry::global().kernels()) {
    const Capabilities& can = kernel->capabilities();  // of another device, and of no record of it
    if (!options.kernels.contains(can.name) || std::ranges::count(kernels_, can.name) > 0) continue;
    advice.excluded.push_back({can.name, check_kind(can, problem.problem().device).reason});
  }
  rank_choices(advice.choices, options.objective);
  advice.find_out = command_to_find_out(advice);
  return advice;
}

std::string plugin_options(const std::set<std::string>& kernels, DeviceKind device) {
  std::set<std::string> plugins;
  for (const std::string& kernel : kernels) {
    if (!KernelRegistry::global().contains(kernel)) continue;  // it is in records alone
    const std::string plugin = plugin_of(kernel, device);
    if (!plugin.empty()) plugins.insert(plugin);
  }
  std::string options;
  for (const std::string& file : plugins) options += " --plugin " + shell_quoted(file);
  return options;
}

std::string command_to_find_out(const Advice& advice) {
  std::vector<std::string> kernels;
  const auto& choices = advice.choices;
  const bool is_open = std::ranges::any_of(choices, &Choice::tied);
  for (const Choice& choice : choices) {
    const bool is_contender = is_open && (choice.tied || &choice == &choices.front());
    if (is_contender && choice.basis != Basis::measured) kernels.push_back(choice.c.kernel);
  }
  for (const Refusal& refusal : advice.unknown) kernels.push_back(refusal.kernel);
  if (kernels.empty()) return "";
  Record record;
  record.c = with_kernel(advice.problem, fmt::format("{}", fmt::join(kernels, ",")));
  return repeat_command(record).text() +
         plugin_options({kernels.begin(), kernels.end()}, advice.problem.problem().device);
}

}  // namespace longca::advise
