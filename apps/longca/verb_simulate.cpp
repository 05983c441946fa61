#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "advise/evidence.h"
#include "axis_notices.h"
#include "bench/ranks/rank_trace.h"
#include "bench/record/origin.h"
#include "bench/record/record.h"
#include "bench/run/run_cells.h"
#include "bench/suite/cases.h"
#include "core/counted.h"
#include "core/device.h"
#include "core/error.h"
#include "core/output_file.h"
#include "core/printable.h"
#include "parallel/executor/kernel_computer.h"
#include "plan_views.h"
#include "platform_notices.h"
#include "run_verbs.h"
#include "simulate/cluster.h"
#include "simulate_cells.h"
#include "simulated_against.h"
#include "verbs.h"

namespace longca {
namespace {

struct SimulateArguments : RecordArguments {
  std::string platform;
  std::vector<std::string> figures;
  std::vector<std::string> rates;
  std::string against;
  std::string comparison;
  std::string trace;
  bool explain = false;

  /// Whether the cells are those that --against has.
  bool takes_measured_cells() const { return !against.empty() && suite.empty() && axes.empty(); }
};

bool is_page(const std::string& platform) {
  return platform.ends_with(".toml");
}

/// Whether the program has a platform of this name with other figures.
bool differs_from_ours(const simulate::Cluster& cluster) {
  const std::vector<std::string> names = simulate::cluster_names();
  return std::ranges::find(names, cluster.name) != names.end() &&
         figures_text(simulate::load_cluster(cluster.name)) != figures_text(cluster);
}

/// "h200x8-set0123abcd": another name for another text.
void append_hash(simulate::Cluster& cluster, const char* what, const std::string& text) {
  const auto hash =
      Device::get(DeviceKind::cpu).hash(0, text.data(), static_cast<std::int64_t>(text.size()));
  cluster.name += fmt::format("-{}{:08x}", what, hash & 0xffffffff);
}

/// The platform of --platform with the figures of --set. Where these are not those of the program's
/// platform of its name, it has another name, and so its cells other keys.
simulate::Cluster cluster_of(const SimulateArguments& arguments) {
  simulate::Cluster cluster = simulate::load_cluster(arguments.platform);
  const bool is_own = is_page(arguments.platform) && differs_from_ours(cluster);
  std::string set;
  for (const std::string& figure : arguments.figures) {
    simulate::set_figure(cluster, figure);
    set += figure + '\n';
  }
  if (is_own) {
    append_hash(cluster, "own", figures_text(cluster));
  } else if (!set.empty()) {
    append_hash(cluster, "set", set);
  }
  return cluster;
}

/// 8, 16, 32, 64 as far as there are GPUs, in the place of `found`.
void write_out_ranks(AxisValues& axes, const simulate::Cluster& cluster) {
  const auto given = axes.find("ranks");
  const bool found =
      given == axes.end() || std::ranges::find(given->second, kFound) != given->second.end();
  if (!found) return;
  std::vector<std::string> ranks;
  for (const int count : {8, 16, 32, 64}) {
    if (count <= cluster.gpus()) ranks.push_back(std::to_string(count));
  }
  if (ranks.empty()) ranks.push_back(std::to_string(cluster.gpus()));
  axes["ranks"] = ranks;
}

/// The suite's cells on this platform, each once.
CaseList suite_cells(const Suite& suite, const simulate::Cluster& cluster) {
  const FoundRanks found{.per_node = static_cast<int>(cluster.platform.node.gpus)};
  CaseList list = expand_over_ranks(suite, found);
  CaseList distinct{{}, std::move(list.skipped)};
  std::unordered_set<std::string> seen;
  const Transport transport =
      suite.axes.contains("transport") ? Transport::asked : Transport::found;
  for (const Case& c : list.cases) {
    Case simulated = simulated_case(c, cluster, transport);
    if (seen.insert(simulated.key()).second) distinct.cases.push_back(std::move(simulated));
  }
  return distinct;
}

/// The cells of the measured records, whatever their mode.
CaseList measured_cells(std::span<const Record> measured, const simulate::Cluster& cluster) {
  CaseList list;
  for (const Record& record : measured) list.cases.push_back(simulated_case(record.c, cluster));
  return list;
}

/// Of the measured records, by their keys when simulated, those whose kernel merged nothing:
/// kernels that do by now are simulated as they ran.
std::set<std::string> merged_in_passes(std::span<const Record> measured,
                                       const simulate::Cluster& cluster) {
  std::set<std::string> keys;
  for (const Record& record : measured) {
    const auto merging = record.notes.find("merging");
    if (merging == record.notes.end() || merging->second != kMergedInPasses) continue;
    keys.insert(simulated_case(record.c, cluster).key());
  }
  return keys;
}

void check_cells(const SimulateArguments& arguments, const CaseList& list,
                 const simulate::Cluster& cluster, const MeasuredRates& rates) {
  if (list.cases.empty()) {
    throw_input_error("--against {}: no cell over GPUs that is ok", arguments.against);
  }
  for (const Case& c : list.cases) cluster.require_ranks(c.ranks.value());
  if (!arguments.trace.empty()) {
    if (list.cases.size() != 1) {
      throw_input_error("--trace: one cell is traced, and there are {}; choose it by -a AXIS=VALUE",
                        list.cases.size());
    }
    if (const Status can = can_trace(list.cases.front().pass); !can.ok()) {
      throw_input_error("--trace: {}", can.reason);
    }
    const OutputFile probe(arguments.trace);  // whether it can be written
  }
  Status first;
  for (const Case& c : list.cases) {
    const Status refused = refusal(c, cluster, rates);
    if (refused.ok()) return;
    if (first.ok()) first = refused;
  }
  throw_input_error("no cell can be simulated: {}", first.reason);
}

/// The records of --rates.
class RateRecords {
 public:
  /// Throws InputError for a file of which cells are of another device than the platform's.
  RateRecords(const std::vector<std::string>& files, const simulate::Cluster& cluster)
      : cluster_(cluster) {
    for (const std::string& file : files) add(file);
    if (!files.empty() && records_.empty()) {
      throw_input_error("--rates {}: no cell on one GPU that is ok",
                        fmt::join(files, ", --rates "));
    }
  }

  const std::vector<Record>& records() const { return records_; }
  /// Says on stderr what was taken without knowing.
  void print_notice() const {
    if (unnamed_ == 0) return;
    fmt::print(
        stderr,
        "longca: --rates: {} taken for the platform {}: nothing says whether their device is "
        "its own\n",
        counted(unnamed_, "cell"), cluster_.name);
  }

 private:
  void add(const std::string& file) {
    std::string other;
    bool fits = false;
    for (Record& record : latest_records(read_records(file).records)) {
      if (!is_rate(record)) continue;
      const std::string device = processor_of_case(record);
      if (record.c.device != cluster_.platform.kind) {
        other = device.empty() ? record.c.device : device;
        continue;  // such a platform's cells take no such rates
      }
      const bool is_known = !device.empty() && cluster_.card != cluster_.platform.name;
      if (is_known && !is_of_platform(device)) refuse(file, device);
      fits = true;
      unnamed_ += is_known ? 0 : 1;
      records_.push_back(std::move(record));
    }
    if (!fits && !other.empty()) refuse(file, other);
  }

  /// A cluster's page may call the card of its platform's page by another name.
  bool is_of_platform(const std::string& device) const {
    return device == cluster_.platform.card || advise::card_is_named(device, cluster_.card);
  }
  [[noreturn]] void refuse(const std::string& file, const std::string& device) const {
    const std::string& card = cluster_.platform.card;
    const bool is_one = advise::card_is_named(card, cluster_.card);
    throw_input_error("--rates {}: its cells are of {}, and the platform {} is of {}", file, device,
                      cluster_.name,
                      is_one ? card : fmt::format("{}, with rates of {}", cluster_.card, card));
  }

  const simulate::Cluster& cluster_;
  std::vector<Record> records_;
  std::int64_t unnamed_ = 0;
};

/// Notes what the name of the platform does not say.
void note_platform(const SimulateArguments& arguments, Record& record) {
  if (is_page(arguments.platform)) record.notes["page"] = arguments.platform;
  if (arguments.figures.empty()) return;
  record.notes["set"] = fmt::format("{}", fmt::join(arguments.figures, " "));
}

void print_borrowed_links(const simulate::Cluster& cluster) {
  const std::string links = simulate::borrowed_links(cluster.platform);
  if (links.empty()) return;
  constexpr std::string_view kOf = "of ";  // "of h200, not measured here"
  const auto begin = links.starts_with(kOf) ? kOf.size() : 0;
  fmt::print(stderr, "longca: the links of {} are those of {}: they were not measured on it\n",
             printable(cluster.name), printable(links.substr(begin, links.find(',') - begin)));
}

Suite suite_on(SimulateArguments arguments, const simulate::Cluster& cluster) {
  arguments.device = cluster.platform.kind;
  arguments.device_of = "the platform " + cluster.name;
  Suite suite = arguments.load();
  write_out_ranks(suite.axes, cluster);
  suite.name = fmt::format("{}-{}", suite.name, cluster.name);
  return suite;
}

/// What --explain prints once all cells are simulated.
class Explanation {
 public:
  /// Throws InputError if it gets too long.
  void add(const std::string& line, std::size_t cells) {
    refuse_too_many_lines(amount(cells), ++lines_);
    text_ += line + '\n';
  }
  /// Says on stderr how much follows.
  void print(std::size_t cells) const {
    fmt::print(stderr, "longca: {}: {} lines\n", amount(cells), lines_);
    fmt::print("{}", text_);
  }

 private:
  static std::string amount(std::size_t cells) {
    return fmt::format("what {} wait{} for", counted(cells, "cell"), cells == 1 ? "s" : "");
  }

  std::string text_;
  std::int64_t lines_ = 0;
};

void simulate_suite(const SimulateArguments& arguments) {
  if (!arguments.comparison.empty() && arguments.against.empty()) {
    throw_input_error("--comparison {}: of the cells of --against FILE, which is not given",
                      arguments.comparison);
  }
  const simulate::Cluster cluster = cluster_of(arguments);
  const RateRecords rate_records(arguments.rates, cluster);
  const MeasuredRates rates(rate_records.records());
  std::vector<Record> measured;
  if (!arguments.against.empty()) {
    measured = measured_over_ranks(read_records(arguments.against).records);
  }
  const Suite suite = suite_on(arguments, cluster);
  CaseList list = arguments.takes_measured_cells() ? measured_cells(measured, cluster)
                                                   : suite_cells(suite, cluster);
  check_cells(arguments, list, cluster, rates);
  RunFiles files = arguments.files(suite);
  if (is_page(arguments.platform)) files.reads("--platform", arguments.platform);
  for (const std::string& file : arguments.rates) files.reads("--rates", file);
  files.reads("--against", arguments.against);
  files.writes_view("--trace", arguments.trace);
  files.writes_view("--comparison", arguments.comparison);
  std::vector<Record> simulated;
  Explanation explanation;
  const std::set<std::string> in_passes = merged_in_passes(measured, cluster);
  CellDetail detail{.trace = arguments.trace};
  if (arguments.explain) {
    detail.explain = [&, cells = list.cases.size()](const std::string& line) {
      explanation.add(line, cells);
    };
  }
  const auto run = [&](std::span<const Case> cases, RunListener& listener) {
    return run_cells(cases, listener, [&](const Case& c, Record& record, std::string& /*output*/) {
      detail.merges_in_passes = in_passes.contains(c.key());
      simulate_cell(c, cluster, rates, detail, record);
      if (detail.merges_in_passes) record.notes["merging"] = kMergedInPasses;
      note_platform(arguments, record);
      simulated.push_back(record);
      return InterruptGuard::signal() == 0;
    });
  };
  rate_records.print_notice();
  print_borrowed_links(cluster);
  print_notices(describe_repeated("--set", arguments.figures));
  print_notices(describe_unknown_kernels(cluster.platform));
  run_recorded(arguments, suite, std::move(list), std::move(files), run);
  if (arguments.explain) explanation.print(simulated.size());
  if (!arguments.against.empty()) {
    const std::vector<ComparedCell> compared = compare_simulated(simulated, measured);
    fmt::print("\n{}", comparison_of_simulated(compared));
    if (!arguments.comparison.empty()) {
      replace_file(arguments.comparison, json_of_simulated(compared));
    }
  }
}

/// Options of runs that mean nothing where nothing is measured.
void remove_measuring(CLI::App& verb) {
  for (const char* name : {"--case-limit", "--memory-limit", "--time-limit", "--rounds",
                           "--dry-run", "--across", "--resume"}) {
    verb.remove_option(verb.get_option(name));
  }
}

}  // namespace

void add_simulate(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("simulate", "A suite (default cp) on a platform not at hand");
  auto arguments = std::make_shared<SimulateArguments>();
  arguments->default_suite = "cp";
  arguments->in_process = true;
  arguments->add_options(*verb);
  remove_measuring(*verb);
  verb->add_option("--platform", arguments->platform,
                   "h200x8, h200x8_ib400, h100x8_ib400, FILE.toml")
      ->type_name("P")
      ->required();
  verb->add_option("--set", arguments->figures,
                   "a figure of the platform: nic_gbps=200; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  verb->add_option("--rates", arguments->rates, "kernels' rates from cells on one GPU; repeatable")
      ->type_name("FILE")
      ->allow_extra_args(false);
  verb->add_option("--against", arguments->against, "compare with measured cells; alone: run these")
      ->type_name("FILE");
  verb->add_option("--comparison", arguments->comparison, "the errors of --against, as JSON")
      ->type_name("FILE");
  verb->add_option("--trace", arguments->trace, "when each op of the one cell runs (Perfetto)")
      ->type_name("FILE");
  verb->add_flag("--explain", arguments->explain, "what the end of each cell waits for");
  verb->get_help_ptr()->group("");
  verb->footer("Example: longca simulate --platform h100x8_ib400 -a kernel=slice -a mask=causal");
  verb->callback([arguments] {
    if (arguments->takes_measured_cells()) arguments->cells_from = arguments->against;
    simulate_suite(*arguments);
  });
}

}  // namespace longca
