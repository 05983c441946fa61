#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/launch/launch_runner.h"
#include "bench/launch/rank_machine.h"
#include "bench/launch/request.h"
#include "bench/ranks/rank_trace.h"
#include "core/error.h"
#include "core/nearest.h"
#include "core/output_file.h"
#include "core/printable.h"
#include "core/process.h"
#include "plan_views.h"
#include "run_verbs.h"
#include "verbs.h"

namespace longca {
namespace {

struct CpArguments : RecordArguments {
  std::string hostfile;
  std::string launcher;
  bool explain = false;
  std::string plot;
  std::string trace;

  /// Whether plans are shown and nothing runs.
  bool shows_plans() const { return explain || !plot.empty(); }
};

Launcher launcher_of(const CpArguments& arguments, const std::optional<MpiLaunch>& launch) {
  const std::string& name = arguments.launcher;
  if (name.empty()) return launch ? Launcher::found : Launcher::mpirun;
  if (name == "mpirun") return Launcher::mpirun;
  if (name == "srun") return Launcher::srun;
  if (name != "none") {
    const std::vector<std::string> known{"mpirun", "srun", "none"};
    throw_input_error("unknown launcher '{}'{}; there are mpirun, srun and none", name,
                      suggestion(name, known));
  }
  if (!launch) {
    throw InputError(
        "--launcher none: this process is not one of several that mpirun or srun has started");
  }
  return Launcher::found;
}

/// Becomes a rank of the launch that this process is part of.
[[noreturn]] void become_rank(const RankStart& start) {
  if (!ranks_are_built().ok()) std::exit(0);  // rank 0 records that
  std::vector<std::string> arguments = rank_arguments(rank_machine(), start, kAddressOfRank0);
  const std::vector<char*> pointers = argument_pointers(arguments);
  ::execv(pointers.front(), pointers.data());
  throw_input_error("{} cannot be started", arguments.front());
}

/// Throws unless the run's only cell can be traced, and the file written, before it is measured.
void expect_traceable(const std::string& file, std::span<const Case> cells) {
  if (cells.size() != 1) {
    throw_input_error("--trace: one cell is traced, and there are {}; choose it by -a AXIS=VALUE",
                      cells.size());
  }
  if (const Status can = can_trace(cells.front().pass); !can.ok()) {
    throw_input_error("--trace: {}", can.reason);
  }
  const OutputFile probe(file);
}

/// Throws InputError if nothing could run, whatever is installed. A GPU that this host lacks is no
/// fault of the command: its cells are recorded as `unavailable`, as in `bench`.
void refuse_what_cannot_run(std::vector<Case> cells, const RankPlaces& places) {
  if (places.max_cuda == 0) std::erase_if(cells, [](const Case& c) { return c.device != "cpu"; });
  if (!cells.empty()) refuse_impossible(cells, places);
}

/// run_recorded, which says if there was no cell left to trace.
void run_traced(const CpArguments& arguments, const Suite& suite, CaseList list, RunFiles files,
                const CellsFunction& run_cells) {
  bool has_run = false;
  const std::string cell = list.cases.front().key();
  const auto run = [&](std::span<const Case> cases, RunListener& listener) {
    has_run = true;
    return run_cells(cases, listener);
  };
  const auto say_untraced = [&] {
    if (has_run) return;
    fmt::print(stderr,
               "longca: --trace: {} is not written, since nothing ran: {} has the cell {}; without "
               "--resume it runs anew\n",
               printable(arguments.trace), printable(arguments.output_path(suite).string()),
               printable(cell));
  };
  try {
    run_recorded(arguments, suite, std::move(list), std::move(files), run);
  } catch (const VerdictFailed&) {
    say_untraced();
    throw;
  }
  say_untraced();
}

void cp(const CpArguments& arguments) {
  const Suite suite = arguments.load();
  const auto launch = find_mpi_launch();
  LaunchOptions options;
  options.start.launcher = launcher_of(arguments, launch);
  options.start.hostfile = arguments.hostfile;
  if (!arguments.hostfile.empty() && options.start.launcher == Launcher::srun) {
    throw_input_error("--hostfile {}: srun takes its hosts from the allocation",
                      arguments.hostfile);
  }
  options.start.plugins = arguments.plugins;
  const bool found = options.start.launcher == Launcher::found;
  const RankPlaces places = found ? places_of(*launch) : places_of(options.start);
  options.start.several_hosts = places.several_hosts;
  options.found_ranks = found ? launch->size : 0;
  options.cell.limits = suite.limits;

  const bool lists = arguments.dry_run && !arguments.shows_plans();
  CaseList list =
      expand_over_ranks(suite, places.ranks, lists ? cells_to_make(arguments) : kAllCases);
  const bool is_whole = list.cases.size() < cells_to_make(arguments);
  if (!arguments.shows_plans() && is_whole) refuse_what_cannot_run(list.cases, places);
  options.start.suite_hash = hash_of_suite(suite, list.cases);
  const bool runs = !arguments.dry_run && !arguments.shows_plans();
  if (runs) host_ranks(options.start, list.cases);
  if (found && arguments.round_count() > 1) {
    throw InputError(
        "--rounds: each round starts its ranks anew, which it cannot in a launch that "
        "mpirun or srun has started");
  }
  RunFiles files = arguments.files(suite);
  files.reads("--hostfile", arguments.hostfile);
  files.writes_view("--trace", arguments.trace);
  files.writes_view("--plot", arguments.plot);
  if (!runs && !arguments.trace.empty()) {
    throw InputError("--trace: nothing runs with --explain, --plot or --dry-run");
  }
  if (!arguments.trace.empty()) {
    expect_traceable(arguments.trace, list.cases);
    options.trace = arguments.trace;
    options.cell.trace = true;
  }
  if (found && launch->rank > 0) {
    if (runs) become_rank(options.start);
    return;
  }
  if (arguments.shows_plans()) {
    if (arguments.explain) explain_plans(list.cases, places.ranks.per_node);
    if (!arguments.plot.empty()) plot_plan_of(list.cases, places.ranks.per_node, arguments.plot);
    return;
  }
  if (arguments.dry_run) {
    show_dry_run(arguments, suite, std::move(list), size_over_ranks(suite, places.ranks));
    return;
  }
  const auto run_cells = [&](std::span<const Case> cases, RunListener& listener) {
    return LaunchRunner(options).run(cases, listener);
  };
  if (arguments.trace.empty()) {
    run_recorded(arguments, suite, std::move(list), std::move(files), run_cells);
  } else {
    run_traced(arguments, suite, std::move(list), std::move(files), run_cells);
  }
}

}  // namespace

void add_cp(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("cp", "A suite (default cp) over ranks: context parallelism");
  auto arguments = std::make_shared<CpArguments>();
  arguments->default_suite = "cp";
  arguments->add_options(*verb);
  verb->add_option("--hostfile", arguments->hostfile, "hosts for mpirun, as NODE slots=8")
      ->type_name("FILE");
  verb->add_option("--launcher", arguments->launcher, "mpirun, srun; none: in a launch already")
      ->type_name("NAME");
  verb->add_flag("--explain", arguments->explain, "print the plans: a line per step and rank");
  verb->add_option("--plot", arguments->plot, "draw the one plan (.png, .svg, .pdf; gnuplot)")
      ->type_name("FILE");
  verb->add_option("--trace", arguments->trace, "when each op of the one cell ran (Perfetto)")
      ->type_name("FILE");
  verb->footer("Example: longca cp -a scheme=all -a mask=causal -a ranks=2,4 -a tokens=4K");
  verb->callback([arguments] { cp(*arguments); });
}

}  // namespace longca
