#include "simulate_cells.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <exception>
#include <string_view>
#include <utility>

#include "attention/api/registry.h"
#include "attention/kernels/slice/planner/call_estimate.h"
#include "bench/cell/problem.h"
#include "bench/cell/steps.h"
#include "bench/ranks/rank_trace.h"
#include "bench/suite/axes.h"
#include "bench/suite/scheme_axes.h"
#include "core/counted.h"
#include "core/rounding.h"
#include "core/thread_pool.h"
#include "parallel/executor/kernel_computer.h"
#include "parallel/plan/explain.h"
#include "simulate/clocks.h"
#include "simulate/critical_path.h"
#include "simulate/engine.h"
#include "simulate/lower.h"

namespace longca {
namespace {

constexpr std::string_view kSustained = "sustained";  ///< the mode

cost::Pass cost_pass(Pass pass) {
  return pass == Pass::backward ? cost::Pass::backward : cost::Pass::forward;
}

/// The passes that a repetition of the case runs.
std::vector<Pass> passes_of(Pass pass) {
  if (pass == Pass::step) return {Pass::forward, Pass::backward};
  return {pass};
}

/// The pass of the case's kernel on the platform's page; a rate of 0 where it has none.
simulate::CallRate page_rate(const Case& c, Pass pass, const cost::Platform& platform) {
  const auto kernel = platform.rates.find(c.kernel);
  if (kernel == platform.rates.end()) return {};
  const auto& own = pass == Pass::backward ? kernel->second.backward : kernel->second.forward;
  if (!own) return {};
  return {own->flops_per_second, own->keys_per_row, own->seconds_per_call};
}

bool page_has(const Case& c, const cost::Platform& platform) {
  return std::ranges::all_of(passes_of(c.pass), [&](Pass pass) {
    return page_rate(c, pass, platform).flops_per_second > 0;
  });
}

/// Whether the page's figures of slice are those of its devices.
bool is_slice_there(const Case& c, const cost::Platform& platform) {
  return c.kernel == "slice" && platform.kind == "cuda";
}

bool has_rates(const Case& c, const MeasuredRates& rates, const cost::Platform& platform) {
  if (is_slice_there(c, platform)) return slice_is_of_page(c) || rates.has(c);
  return rates.has(c) || page_has(c, platform);
}

/// The case's kernel; null if it is not one of ours but of records alone.
const Kernel* kernel_of(const Case& c) {
  const KernelRegistry& kernels = KernelRegistry::global();
  return kernels.contains(c.kernel) ? &kernels.find(c.kernel, c.problem().device) : nullptr;
}

/// Whether the kernel computes the problem.
Status kernel_supports(const Case& c, const Mask& mask) {
  const Kernel* kernel = kernel_of(c);
  if (kernel == nullptr) return {};
  const Problem problem = c.problem();
  if (Support kind = check_kind(kernel->capabilities(), problem.device); !kind.ok()) return {kind};
  return {kernel->can_express(problem, mask)};
}

/// Whether the kernel computes the steps of a pass of a rank: their masks may be of other forms
/// than the whole one's.
Status steps_supported(const Kernel& kernel, const Problem& whole, const RankPlan& plan,
                       bool backward) {
  for (const Op& op : backward ? plan.backward : plan.forward) {
    const auto refusal = [&](const auto& attend) -> Support {
      const Mask& mask = plan.masks[static_cast<std::size_t>(attend.mask)];
      Problem step = whole;
      step.tokens_q = mask.q_tokens();
      step.tokens_k = mask.k_tokens();
      step.heads_q = static_cast<int>(attend.q.heads.size());
      step.heads_k = static_cast<int>(attend.k.heads.size());
      step.backward = backward;
      return kernel.can_express(step, mask);
    };
    Support said = check_step(kernel.capabilities(), plan, op, whole.dtype);
    if (said.ok()) {
      if (const auto* attend = std::get_if<Attend>(&op.what)) said = refusal(*attend);
      if (const auto* attend = std::get_if<AttendBackward>(&op.what)) said = refusal(*attend);
    }
    if (!said.ok()) {
      return {said.code,
              fmt::format("rank {}: {}: {}", plan.rank, name_step(plan, op), said.reason)};
    }
  }
  return {};
}

/// What the platform's page says that a cell of slice took.
double page_seconds(const Case& c, const Mask& mask, const simulate::SliceTimes& times) {
  const cost::Pass pass = cost_pass(c.pass);
  const cost::HeadShape shape{c.heads_q, c.heads_k, c.head_dim, static_cast<int>(size_of(c.dtype))};
  const auto call = times.call(mask, shape, pass);
  return c.mode == kSustained ? times.sustained(call, pass) : times.slowed(call.seconds, pass);
}

/// What MeasuredRates::slice_factor depends on.
std::string factor_key(const Case& c, Pass pass, const cost::Platform& platform) {
  return fmt::format("{} {} {} {} {} {}", c.head_dim, c.softcap.has_value(), to_string(c.dtype),
                     to_string(pass), platform.name, c.simulated_mode.value_or(""));
}

/// Sets what the kernel of the case merges itself.
void note_merging(const Case& c, simulate::OpTimes& times) {
  const Kernel* kernel = kernel_of(c);
  if (kernel == nullptr) return;
  times.merges_earlier = can_merge_earlier(kernel->capabilities(), c.problem());
  times.adds_to_dq = kernel->capabilities().adds_to_dq;
}

/// "rates of slice, cudnn only": what the platform's page has of kernels on GPUs.
std::string rates_of_page(const cost::Platform& platform) {
  std::vector<std::string> kernels;
  if (platform.kind == "cuda") {
    kernels.push_back(fmt::format("slice (heads of {}, no softcap)", slice::kCycleDim));
  }
  for (const auto& [kernel, rates] : platform.rates) kernels.push_back(kernel);
  if (kernels.empty()) return "no kernel's rates on a GPU";
  return fmt::format("rates of {} only", fmt::join(kernels, ", "));
}

/// "slice with dim=64": what rates are missing of.
std::string kernel_and_form(const Case& c) {
  if (c.kernel != "slice" || slice_is_of_page(c)) return c.kernel;
  return fmt::format("slice with dim={}{}", find_axis("dim").text(c).value_or(""),
                     c.softcap ? " and a softcap" : "");
}

/// As `cp` has it, whose planners weigh plans by the default platform's figures on every card.
ParallelProblem problem_of(const Case& c, const GeneratedMask& mask,
                           const simulate::Cluster& cluster) {
  return parallel_problem(c, mask, static_cast<int>(cluster.platform.node.gpus));
}

/// One rank's part of a pass, beside its program.
struct RankSums {
  PlanSums sums;
  double formula = 0;
};

/// A pass of all ranks, made from plans that are dropped again.
class PassBuilder {
 public:
  /// `kernel` is null where it is of records alone.
  PassBuilder(const ParallelProblem& problem, const Scheme& scheme, const simulate::OpTimes& times,
              const Kernel* kernel, bool backward)
      : problem_(problem), scheme_(scheme), times_(times), kernel_(kernel), backward_(backward) {
    problem_.shardings = &shardings_;
    const auto ranks = static_cast<std::size_t>(problem.ranks);
    works_.resize(ranks);
    sums_.resize(ranks);
    supported_.resize(ranks);
    ThreadPool::global().parallel_for(problem.ranks, [&](std::int64_t rank, int /*worker*/) {
      lower_rank(static_cast<int>(rank));
    });
  }

  simulate::Program program() { return simulate::link(std::move(works_)); }
  const std::vector<RankSums>& sums() const { return sums_; }
  const std::vector<std::string>& notes() const { return notes_; }
  /// The first rank's refusal that the kernel computes its steps.
  Status supported() const {
    const auto refusal = std::ranges::find_if_not(supported_, &Status::ok);
    return refusal == supported_.end() ? Status{} : *refusal;
  }

 private:
  void lower_rank(int rank) {
    const RankPlan plan = scheme_.plan(problem_, rank);
    const auto i = static_cast<std::size_t>(rank);
    if (kernel_ != nullptr) {
      supported_[i] = steps_supported(*kernel_, problem_.problem, plan, backward_);
    }
    works_[i] = simulate::lower(plan, backward_, times_);
    sums_[i].sums =
        sum_plan(plan, backward_ ? plan.backward : plan.forward, times_.head_dim, times_.dtype);
    sums_[i].formula = static_cast<double>(scheme_.formula_bytes(problem_, rank, backward_));
    if (rank == 0) notes_ = plan.notes;
  }

  ParallelProblem problem_;
  ShardingCache shardings_;
  const Scheme& scheme_;
  const simulate::OpTimes& times_;
  const Kernel* kernel_;
  bool backward_;
  std::vector<Status> supported_;
  std::vector<simulate::RankWork> works_;
  std::vector<RankSums> sums_;
  std::vector<std::string> notes_;
};

double largest(const std::vector<double>& values) {
  return *std::ranges::max_element(values);
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

/// The trace of a pass: plans are made once more, since the simulation keeps none.
void trace_pass(const Case& c, const ParallelProblem& problem, const simulate::SimulatedPass& pass,
                const std::string& file) {
  const Scheme& scheme = find_scheme(*c.scheme);
  std::vector<std::string> ranks;
  for (int rank = 0; rank < problem.ranks; ++rank) {
    const RankPlan plan = scheme.plan(problem, rank);
    ranks.push_back(trace_of_rank(plan, c.pass == Pass::backward ? plan.backward : plan.forward,
                                  simulate::trace_times(pass, rank), c.head_dim, c.dtype));
  }
  write_trace(file, c, ranks);
}

/// A repetition of a cell: its passes one after the other, as `cp` runs them. A rank begins the
/// second one where it has ended the first one, whatever the others do.
class CellSimulation {
 public:
  /// The arguments outlive this object.
  CellSimulation(const Case& c, const ParallelProblem& problem, const simulate::Cluster& cluster,
                 const simulate::OpTimes& times, const CellDetail& detail)
      : case_(c), problem_(problem), cluster_(cluster), times_(times), detail_(detail) {
    for (auto* values : {&ends_, &compute_ms_, &bytes_sent_, &bytes_formula_, &cells_}) {
      values->assign(static_cast<std::size_t>(problem.ranks), 0);
    }
  }

  /// The next pass; a refusal if the kernel does not compute its steps.
  Status run(Pass which) {
    PassBuilder builder(problem_, find_scheme(*case_.scheme), times_, kernel_of(case_),
                        which == Pass::backward);
    if (Status refused = builder.supported(); !refused.ok()) return refused;
    simulate::Program program = builder.program();
    if (times_.sustained) {
      simulate::settle_clocks(program, cluster_, *times_.kernel, cost_pass(which));
    }
    simulate::SimulatedPass whole =
        simulate::run(program, cluster_, simulate::Exchanges::run, ends_);
    add(whole, simulate::run(program, cluster_, simulate::Exchanges::skip), builder);
    if (!detail_.trace.empty()) trace_pass(case_, problem_, whole, detail_.trace);
    if (detail_.explain) passes_.push_back({which, std::move(program), std::move(whole)});
    return {};
  }

  void note(Record& record) const {
    auto& metrics = record.metrics;
    metrics["time_ms"] = largest(ends_) * 1e3;
    metrics["compute_ms"] = largest(compute_ms_);
    metrics["exposed_comm_ms"] = metrics["time_ms"] - metrics["compute_ms"];
    metrics["bytes_sent"] = largest(bytes_sent_);
    metrics["bytes_formula"] = largest(bytes_formula_);
    if (mean_of(cells_) > 0) metrics["imbalance"] = largest(cells_) / mean_of(cells_);
    if (mean_of(compute_ms_) > 0) {  // of equal times the mean may be rounded up
      metrics["time_imbalance"] = std::max(1.0, largest(compute_ms_) / mean_of(compute_ms_));
    }
    // To the nanosecond: a thousand of them are most of a record.
    for (const double end : ends_) record.rank_times_ms.push_back(std::round(end * 1e9) / 1e6);
    if (!notes_.empty()) record.notes["plan"] = fmt::format("{}", fmt::join(notes_, "; "));
  }

  /// What the end of the repetition waited for, from the first pass to the last one.
  void explain() const {
    if (passes_.empty()) return;
    std::vector<std::string> lines;
    int last = passes_.back().simulated.slowest();
    for (auto it = passes_.rbegin(); it != passes_.rend(); ++it) {
      const ExplainedPass& pass = *it;
      const simulate::CriticalPath path =
          simulate::critical_path(pass.program, pass.simulated, cluster_, last);
      const double seconds = pass.simulated.ends[static_cast<std::size_t>(last)] -
                             pass.simulated.starts[static_cast<std::size_t>(path.first)];
      std::vector<std::string> of_pass = {
          fmt::format("{}: {} {:.3f} ms", case_.key(), to_string(pass.which), seconds * 1e3)};
      for (const std::string& sentence : path.sentences) of_pass.push_back("  " + sentence);
      lines.insert(lines.begin(), of_pass.begin(), of_pass.end());
      last = path.first;
    }
    for (const std::string& line : lines) detail_.explain(line);
  }

 private:
  struct ExplainedPass {
    Pass which;
    simulate::Program program;
    simulate::SimulatedPass simulated;
  };

  void add(const simulate::SimulatedPass& whole, const simulate::SimulatedPass& alone,
           const PassBuilder& builder) {
    constexpr double kMaxSeconds = 1e9;
    if (!(whole.end() <= kMaxSeconds)) {
      throw_input_error("the platform {} is so slow that {} takes {:.3g} s", cluster_.name,
                        case_.key(), whole.end());
    }
    ends_ = whole.ends;
    for (std::size_t rank = 0; rank < ends_.size(); ++rank) {
      compute_ms_[rank] += alone.ends[rank] * 1e3;
      bytes_sent_[rank] += static_cast<double>(whole.bytes_sent[rank]);
      bytes_formula_[rank] += builder.sums()[rank].formula;
      cells_[rank] += builder.sums()[rank].sums.cells;
    }
    if (!builder.notes().empty()) notes_ = builder.notes();
  }

  const Case& case_;
  const ParallelProblem& problem_;
  const simulate::Cluster& cluster_;
  const simulate::OpTimes& times_;
  const CellDetail& detail_;
  std::vector<double> ends_;  ///< by rank, as all that follow: seconds since the repetition began
  std::vector<double> compute_ms_, bytes_sent_, bytes_formula_, cells_;
  std::vector<std::string> notes_;
  std::vector<ExplainedPass> passes_;  ///< to be explained
};

/// Whether copies into each other's memory would have to reach other hosts.
bool peer_leaves_node(const Case& c, const simulate::Cluster& cluster) {
  return c.transport == "peer" && c.ranks.value() > cluster.platform.node.gpus;
}

/// What the case's exchanges are timed by, where it is not by links of the platform's own and of
/// its transport; "" otherwise.
std::string foreign_links(const Case& c, const cost::Platform& platform) {
  std::string links = simulate::borrowed_links(platform);
  if (c.transport != "nccl") return links;
  return (links.empty() ? "" : links + "; ") + "as of peer: NCCL's protocols are not simulated";
}

}  // namespace

bool is_rate(const Record& record) {
  const Case& c = record.c;
  if (!record.status.ok() || c.scheme || c.head_dim_v || c.pass == Pass::step) return false;
  if (c.selects_by_scores()) return false;  // its mask is drawn on its device
  return (c.mode == "burst" || c.mode == kSustained) && record.metrics.contains("time_ms") &&
         record.metrics.contains("area");
}

MeasuredRates::MeasuredRates(std::span<const Record> records) {
  for (const Record& record : records) {
    if (!is_rate(record)) continue;
    const Case& c = record.c;
    const double seconds = record.metrics.at("time_ms") / 1e3;
    cells_.push_back({c,
                      {record.metrics.at("area"), static_cast<double>(c.tokens), c.heads_q,
                       c.head_dim, seconds}});
  }
}

std::vector<const MeasuredRates::Cell*> MeasuredRates::cells_like(const Case& c, Pass pass) const {
  std::vector<const Cell*> alike;
  for (const Cell& cell : cells_) {
    if (cell.c.kernel == c.kernel && cell.c.device == c.device && cell.c.pass == pass &&
        cell.c.head_dim == c.head_dim && cell.c.dtype == c.dtype &&
        cell.c.softcap.has_value() == c.softcap.has_value()) {
      alike.push_back(&cell);
    }
  }
  const std::string mode = c.simulated_mode.value_or("burst");
  const auto other = [&](const Cell* cell) { return cell->c.mode != mode; };
  if (!std::ranges::all_of(alike, other)) std::erase_if(alike, other);
  return alike;
}

bool slice_is_of_page(const Case& c) {
  return c.head_dim == slice::kCycleDim && !c.head_dim_v && !c.softcap;
}

bool has_fixed_order(const Case& c) {
  return c.pass != Pass::forward && c.deterministic.value_or(0) != 0;
}

bool MeasuredRates::has(const Case& c) const {
  return std::ranges::none_of(passes_of(c.pass),
                              [&](Pass pass) { return cells_like(c, pass).empty(); });
}

simulate::CallRate MeasuredRates::rate(const Case& c, Pass pass, double area) const {
  std::vector<simulate::TimedCall> all;
  std::vector<simulate::TimedCall> of_mask;
  for (const Cell* cell : cells_like(c, pass)) {
    all.push_back(cell->call);
    if (cell->c.mask == c.mask) of_mask.push_back(cell->call);
  }
  const simulate::CallRate base = fit_rate(all, cost_pass(pass));
  const double rows = static_cast<double>(c.tokens) / c.ranks.value_or(1);
  const double seconds = base.seconds(area, rows, c.heads_q, c.head_dim, cost_pass(pass));
  return scaled_to(base, of_mask, cost_pass(pass), seconds);
}

double MeasuredRates::slice_factor(const Case& c, Pass pass, const cost::Platform& platform) const {
  const auto found = factors_.find(factor_key(c, pass, platform));
  return found == factors_.end() ? 1 : found->second;
}

void MeasuredRates::fit_slice(const Case& c, const cost::Platform& platform) const {
  std::map<std::string, std::vector<const Cell*>> by_factor;
  for (const Pass pass : passes_of(c.pass)) {
    std::string key = factor_key(c, pass, platform);
    if (!factors_.contains(key)) by_factor.emplace(std::move(key), cells_like(c, pass));
  }
  if (by_factor.empty()) return;
  std::map<std::string, std::vector<const Cell*>> by_problem;  // these have one mask, drawn once
  for (const auto& [key, cells] : by_factor) {
    for (const Cell* cell : cells) by_problem[cell->c.problem_key()].push_back(cell);
  }
  std::vector<std::span<const Cell* const>> problems;
  std::map<const Cell*, double> logarithms;
  for (const auto& [key, cells] : by_problem) {
    problems.emplace_back(cells);
    for (const Cell* cell : cells) logarithms[cell] = 0;
  }
  const simulate::SliceTimes times(platform);
  // The lists of a mask of blocks may take 4 GB, and are themselves made by the program's pool.
  constexpr std::int64_t kMasksAtATime = 2;
  std::vector<std::exception_ptr> errors(problems.size());
  ThreadPool pool(
      static_cast<int>(std::min<std::int64_t>({kMasksAtATime, ThreadPool::global().threads(),
                                               std::max<std::int64_t>(std::ssize(problems), 1)})));
  pool.parallel_for(std::ssize(problems), [&](std::int64_t i, int /*worker*/) {
    const auto index = static_cast<std::size_t>(i);
    try {
      const GeneratedMask mask = case_mask(problems[index].front()->c);
      for (const Cell* cell : problems[index]) {
        const double page = page_seconds(cell->c, mask.mask, times);
        logarithms.at(cell) = std::log(cell->call.seconds / page);
      }
    } catch (...) {
      errors[index] = std::current_exception();
    }
  });
  // The first in order, whichever came first.
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  for (const auto& [key, cells] : by_factor) {
    double sum = 0;
    for (const Cell* cell : cells) sum += logarithms.at(cell);
    factors_[key] = cells.empty() ? 1 : std::exp(sum / static_cast<double>(cells.size()));
  }
}

std::unique_ptr<simulate::KernelTimes> MeasuredRates::times(const Case& c, double area,
                                                            const cost::Platform& platform) const {
  if (is_slice_there(c, platform)) {
    fit_slice(c, platform);
    return std::make_unique<simulate::SliceTimes>(platform,
                                                  slice_factor(c, Pass::forward, platform),
                                                  slice_factor(c, Pass::backward, platform));
  }
  if (has(c)) {
    return std::make_unique<simulate::RateTimes>(rate(c, Pass::forward, area),
                                                 rate(c, Pass::backward, area));
  }
  if (!page_has(c, platform)) return nullptr;
  return std::make_unique<simulate::RateTimes>(page_rate(c, Pass::forward, platform),
                                               page_rate(c, Pass::backward, platform));
}

void set_simulated_mode(Case& c) {
  if (c.mode == kSustained) c.simulated_mode = c.mode;
  c.mode = "simulated";
}

Case simulated_case(Case c, const simulate::Cluster& cluster, Transport transport) {
  set_simulated_mode(c);
  c.platform = cluster.name;
  if (transport == Transport::found && peer_leaves_node(c, cluster)) c.transport = "nccl";
  return c;
}

Status refusal(const Case& c, const simulate::Cluster& cluster, const MeasuredRates& rates) {
  if (Status transport{check_transport(c)}; !transport.ok()) return transport;
  if (peer_leaves_node(c, cluster)) {
    return Status::unsupported(fmt::format(
        "the transport peer works inside one host, and {} ranks are on {} nodes of {}: there it is "
        "nccl",
        c.ranks.value(), ceil_div(std::int64_t{*c.ranks}, cluster.platform.node.gpus),
        counted(cluster.platform.node.gpus, "GPU")));
  }
  const GeneratedMask mask = case_mask(c);
  if (Status kernel = kernel_supports(c, mask.mask); !kernel.ok()) return kernel;
  Status scheme{find_scheme(*c.scheme).supports(problem_of(c, mask, cluster))};
  if (!scheme.ok()) return scheme;
  if (!has_rates(c, rates, cluster.platform)) {
    return {StatusCode::unavailable,
            fmt::format("the platform has {}: those of {} come from its records on one GPU, by "
                        "--rates FILE (simulate) or --records FILE (advise)",
                        rates_of_page(cluster.platform), kernel_and_form(c))};
  }
  return {};
}

void simulate_cell(const Case& c, const simulate::Cluster& cluster, const MeasuredRates& rates,
                   const CellDetail& detail, Record& record) {
  record.c = c;
  record.status = refusal(c, cluster, rates);
  if (!record.status.ok()) return;
  const GeneratedMask mask = case_mask(c);
  const ParallelProblem problem = problem_of(c, mask, cluster);
  const auto kernel = rates.times(c, mask.mask.mean_area() / problem.ranks, cluster.platform);
  simulate::OpTimes times{kernel.get(), &cluster.platform, c.head_dim, c.dtype,
                          c.simulated_mode.has_value()};
  if (!detail.merges_in_passes) note_merging(c, times);
  CellSimulation simulation(c, problem, cluster, times, detail);
  for (const Pass pass : passes_of(c.pass)) {
    record.status = simulation.run(pass);
    if (!record.status.ok()) return;
  }
  simulation.note(record);
  simulation.explain();
  record.metrics["area"] = mask.mask.mean_area();
  record.metrics["tflops"] = pass_flops(c.pass, c.problem(), mask.mask) / problem.ranks /
                             (record.metrics["time_ms"] / 1e3) / 1e12;
  if (const std::string links = foreign_links(c, cluster.platform); !links.empty()) {
    record.notes["links"] = links;
  }
  if (has_fixed_order(c)) record.notes["deterministic"] = "a fixed order's cost is not simulated";
  if (const std::string nics = scaled_nics(cluster); !nics.empty()) record.notes["nics"] = nics;
  record.notes["rates"] = rates.has(c) ? "of one GPU's records" : "of the platform's page";
}

}  // namespace longca
