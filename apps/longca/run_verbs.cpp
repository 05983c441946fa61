#include "run_verbs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <set>
#include <string_view>
#include <vector>

#include "axis_notices.h"
#include "bench/plugin_loader.h"
#include "bench/record/record.h"
#include "bench/record/record_writer.h"
#include "bench/run/dry_run.h"
#include "bench/run/rounds.h"
#include "bench/run/run_cells.h"
#include "bench/suite/axes.h"
#include "bench/suite/notices.h"
#include "core/counted.h"
#include "core/device.h"
#include "core/error.h"
#include "core/output_file.h"
#include "core/printable.h"
#include "mask/own_lengths.h"
#include "mask/own_mask.h"
#include "report/format.h"
#include "report/html.h"
#include "report/table.h"
#include "run_records.h"
#include "usage.h"
#include "verbs.h"

namespace longca {
namespace {

namespace fs = std::filesystem;

void set_limit(const char* option, const std::optional<double>& given, double& limit) {
  if (!given) return;
  if (!(*given > 0 && *given <= RunLimits::kMaxSeconds)) {
    throw_input_error("{} {} is not above 0 and at most {}", option, *given,
                      RunLimits::kMaxSeconds);
  }
  limit = *given;
}

/// Completes records and writes them to the file before passing them on.
class RecordListener : public RunListener {
 public:
  RecordListener(RecordWriter& writer, RunListener& progress, nlohmann::json env, int rounds,
                 RunRecords& records)
      : writer_(writer),
        progress_(progress),
        records_(records),
        env_(std::move(env)),
        rounds_(rounds) {}

  void started(const Case& c) override { progress_.started(c); }
  void finished(const Record& record, const std::string& output) override {
    Record complete = record;
    complete.env = env_;
    writer_.append(records_.add(complete, rounds_ > 1));
    records_.note_written();
    progress_.finished(record, output);
  }

 private:
  RecordWriter& writer_;
  RunListener& progress_;
  RunRecords& records_;
  nlohmann::json env_;
  int rounds_;
};

/// Throws VerdictFailed for what --strict and --require-ok do not let pass: no cell that ran above
/// all.
void judge(const RecordArguments& arguments, std::span<const Record> records) {
  const auto is_ok = [](const Record& record) { return record.status.ok(); };
  const auto failed = [](const Record& record) { return is_failure(record.status.code); };
  if ((arguments.strict || arguments.require_ok) && std::ranges::none_of(records, is_ok)) {
    fmt::print(stderr, "longca: no cell has a result\n");
    throw VerdictFailed{};
  }
  if (arguments.strict && std::ranges::any_of(records, failed)) throw VerdictFailed{};
  if (arguments.require_ok && !std::ranges::all_of(records, is_ok)) throw VerdictFailed{};
}

void say_where_old_records_are(const RecordWriter& writer) {
  if (writer.backup().empty()) return;
  fmt::print(stderr, "longca: the records that were there before are in {}\n",
             printable(writer.backup().string()));
}

/// The cases that a round has to run: in a run of one round in the suite's order.
std::vector<Case> cases_of_round(std::span<const Case> cases, const RunRecords& records, int round,
                                 int rounds, std::uint64_t seed) {
  std::vector<Case> lacking;
  std::ranges::copy_if(cases, std::back_inserter(lacking),
                       [&](const Case& c) { return records.lacks(c, round); });
  return rounds > 1 ? order_of_round(lacking, seed, round) : lacking;
}

/// Runs what the records lack, and adds to them. False if the run ended early.
bool run_rest(const RecordArguments& arguments, std::span<const std::string> notices,
              std::span<const Case> cases, const fs::path& path, const nlohmann::json& env,
              const CellsFunction& run_cells, RunRecords& records) {
  const int rounds = arguments.round_count();
  const auto lacking = [&](int round) {
    return std::ranges::count_if(cases, [&](const Case& c) { return records.lacks(c, round); });
  };
  std::size_t left = 0;
  for (int round = 0; round < rounds; ++round) left += static_cast<std::size_t>(lacking(round));
  RecordWriter writer(
      path, arguments.resume ? RecordWriter::Mode::resume : RecordWriter::Mode::replace,
      arguments.force ? RecordWriter::kAnyNumber : cases.size(), !arguments.in_process);
  print_notices(notices);
  bool complete = true;
  try {
    Progress progress(left, arguments.progress_style());
    progress.tell_apart(cases);
    RecordListener listener(writer, progress, env, rounds, records);
    const std::uint64_t seed = rounds > 1 ? env.at("rounds").at("seed").get<std::uint64_t>() : 0;
    for (int round = 0; round < rounds && complete; ++round) {
      const std::vector<Case> chosen = cases_of_round(cases, records, round, rounds, seed);
      if (chosen.empty()) continue;
      if (rounds > 1) progress.begin_round(round + 1, rounds);
      const auto before = lacking(rounds - 1);
      complete = run_cells(chosen, listener);
      // Cells that failed have no further rounds.
      const auto failed = static_cast<std::size_t>(before - lacking(rounds - 1));
      if (round + 1 < rounds) {
        progress.leave_out(failed * static_cast<std::size_t>(rounds - 1 - round));
      }
    }
    if (rounds > 1) writer.keep_latest();
  } catch (const SystemError&) {
    say_where_old_records_are(writer);
    throw;
  }
  say_where_old_records_are(writer);
  return complete;
}

constexpr const char* kInterrupted = "interrupted";

/// Says on stderr what a run that ended early has left.
void say_what_is_left(const RecordArguments& arguments, const char* why, const RunRecords& records,
                      std::size_t cells, const fs::path& path) {
  const std::string file = printable(path.string());
  std::error_code error;
  // A file that is replaced stays in its place until the first record.
  if (records.written() == 0 && fs::file_size(path, error) > 0 && !error) {
    fmt::print(stderr, "longca: {} before a cell had ended; {} holds what it held before\n", why,
               file);
    return;
  }
  const auto rounds = static_cast<std::size_t>(arguments.round_count());
  const std::string done = rounds == 1
                               ? fmt::format("{} of {} cells are", records.written(), cells)
                               : fmt::format("{} of {} measurements, {} rounds of {} cells, are",
                                             records.measured(), rounds * cells, rounds, cells);
  fmt::print(stderr, "longca: {}; {} in {}{}\n", why, done, file,
             arguments.in_process ? "" : ", add --resume to run the rest");
}

/// run_rest, which a signal ends.
bool run_until_signal(const RecordArguments& arguments, std::span<const std::string> notices,
                      std::span<const Case> cases, const fs::path& path, const nlohmann::json& env,
                      const CellsFunction& run_cells, RunRecords& records) {
  const InterruptGuard guard;
  std::optional<InterruptDeadline> deadline;
  if (arguments.in_process) {
    deadline.emplace([&](int) {
      if (arguments.progress_style() == Progress::Style::bar) fmt::print(stderr, "\n");
      say_what_is_left(arguments, kInterrupted, records, cases.size(), path);
    });
  }
  return run_rest(arguments, notices, cases, path, env, run_cells, records);
}

/// Adds what an exception gives cells to the values that they may have.
void add_values(const AxisValues& more, AxisValues& values) {
  for (const auto& [name, list] : more) {
    const Axis& axis = find_axis(name);
    const auto [known, is_new] = values.try_emplace(name);
    if (is_new && !axis.standard.empty()) known->second = axis.parse(axis.standard);
    known->second.insert(known->second.end(), list.begin(), list.end());
  }
}

fs::path page_of(const fs::path& path) {
  return fs::path(path).replace_extension(".html");
}

}  // namespace

void RunArguments::add_options(CLI::App& verb) {
  verb.add_option("-a,--axis", axes, "values of an axis, as tokens=1K:8K:x2; repeatable")
      ->type_name("AXIS=LIST")
      ->allow_extra_args(false);
  add_plugin_option(verb, plugins);
  verb.add_option("--case-limit", case_limit_s, "a cell that takes longer is `timeout`")
      ->type_name("S");
  verb.add_option("--memory-limit", memory_limit_mib, "a cell that takes more is `oom`")
      ->type_name("MIB");
  verb.add_flag("--quiet", quiet, "no progress");
}

Suite RunArguments::load() const {
  for (const std::string& plugin : plugins) {
    describe_plugin(plugin, std::min(kPluginLimit, case_limit_s.value_or(kPluginLimit)));
  }
  Suite chosen = load_suite(suite.empty() ? default_suite : suite);
  if (suite.empty() && !axes.empty()) drop_mask_axes(chosen);
  AxisValues given = given_axes();
  if (!device.empty()) {
    const auto [place, is_new] = given.try_emplace("device", 1, device);
    for (const std::string& value : place->second) {
      if (value == device || value == kFound) continue;
      throw_input_error("device {}: the cells are of {}, whose device is {}", value, device_of,
                        device);
    }
    place->second = {device};
  }
  override_axes(chosen, given);
  leave_out_what_cannot_run(chosen, given);
  set_limit("--time-limit", time_limit_s, chosen.limits.time_limit_s);
  set_limit("--case-limit", case_limit_s, chosen.limits.case_limit_s);
  if (memory_limit_mib) {
    if (*memory_limit_mib < 1 || *memory_limit_mib > RunLimits::kMaxMemoryMib) {
      throw_input_error("--memory-limit {} is not from 1 to {}", *memory_limit_mib,
                        RunLimits::kMaxMemoryMib);
    }
    chosen.limits.memory_limit_mib = *memory_limit_mib;
  }
  return chosen;
}

AxisValues RunArguments::given_axes() const {
  AxisValues given;
  for (const std::string& axis : axes) parse_axis_argument(axis, given);
  return given;
}

std::vector<std::string> RunArguments::notices(const Suite& chosen, const CaseList& list) const {
  std::vector<std::string> lines;
  const bool says_defaults = suite.empty() && !quiet;
  if (says_defaults && !cells_from.empty()) {
    lines.push_back(fmt::format("no suite given, runs the {} over GPUs of {}",
                                counted(list.cases.size(), "cell"), cells_from));
  } else if (says_defaults && axes.empty()) {
    lines.push_back(fmt::format("no suite given, runs {}: {}", chosen.name, chosen.description));
  } else if (says_defaults) {
    lines.push_back("no suite given, takes the defaults " +
                    describe_defaults(list.cases, given_axes()));
  }
  if (!list.skipped.empty()) lines.push_back(describe_skipped(chosen, list));
  for (std::string& line : describe_repeated("-a", axes)) lines.push_back(std::move(line));
  if (quiet) return lines;
  const bool over_ranks = axis_of_ranks(chosen.axes).has_value() ||
                          (!list.cases.empty() && list.cases.front().scheme.has_value());
  AxisValues possible = chosen.axes;
  for (const SuiteException& exception : chosen.exceptions) add_values(exception.set, possible);
  for (std::string& line : describe_unused(axes, possible, over_ranks)) {
    lines.push_back(std::move(line));
  }
  return lines;
}

void print_notices(std::span<const std::string> notices) {
  for (const std::string& notice : notices) fmt::print(stderr, "longca: {}\n", printable(notice));
}

RunFiles RunArguments::files(const Suite& chosen) const {
  RunFiles files;
  files.reads("SUITE", chosen.path);
  for (const std::string& plugin : plugins) files.reads("--plugin", plugin);
  const auto values_of = [&](const char* axis) {
    const auto found = chosen.axes.find(axis);
    return found == chosen.axes.end() ? std::vector<std::string>{} : found->second;
  };
  for (const std::string& name : values_of("lengths")) {
    if (const OwnLengths* own = find_own_lengths(name)) files.reads("lengths", own->path);
  }
  for (const std::string& name : values_of("mask")) {
    if (const OwnMask* own = find_own_mask(name)) files.reads("mask", own->path);
  }
  return files;
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

void RecordArguments::add_options(CLI::App& verb) {
  verb.add_option("SUITE", suite,
                  fmt::format("a name of `list suites`, or FILE.toml (default {})", default_suite))
      ->type_name("");
  RunArguments::add_options(verb);
  verb.add_option("--rounds", rounds, "all of it N times, each in new processes, reordered")
      ->type_name("N");
  verb.add_option("--time-limit", time_limit_s, "timing stops here, after 7 repetitions (1)")
      ->type_name("S");
  verb.add_option("--out", out, "default results/SUITE.jsonl, and .html beside it")
      ->type_name("FILE.jsonl");
  verb.add_flag("--resume", resume, "keep what --out has; run the cells it lacks");
  verb.add_flag("--across", across, "resume what another machine, commit, plug-in began");
  verb.add_flag("--force", force, "replace --out though it has more cells; NAME.bak stays");
  verb.add_flag("--dry-run", dry_run, "list the cells, FLOPs and memory; run none");
  verb.add_flag("--strict", strict, "exit 1 if a cell failed, or none is ok");
  verb.add_flag("--require-ok", require_ok, "exit 1 unless every cell is ok");
}

int RecordArguments::round_count() const {
  check_rounds(rounds);
  return static_cast<int>(rounds);
}

fs::path RecordArguments::output_path(const Suite& chosen) const {
  if (out == "-") throw InputError("--out -: records go to a file, as --out my.jsonl");
  if (!out.empty()) return out;
  std::string name = chosen.name;
  std::string own;
  for (const std::string& axis : axes) own += axis + '\n';
  for (const std::string& plugin : plugins) own += fs::path(plugin).filename().string() + '\n';
  own += cells_from;
  if (!own.empty()) {
    const auto size = static_cast<std::int64_t>(own.size());
    const auto hash = Device::get(DeviceKind::cpu).hash(0, own.data(), size);
    name += fmt::format("-{:08x}", hash & 0xffffffff);
  }
  return fs::path("results") / (name + ".jsonl");
}

void show_dry_run(const RecordArguments& arguments, const Suite& suite, CaseList list,
                  SuiteSize size) {
  const int rounds = arguments.round_count();
  list.skipped.clear();  // what is listed says itself what is left out
  print_notices(arguments.notices(suite, list));
  if (arguments.resume) {
    const fs::path path = arguments.output_path(suite);
    const RunRecords records(read_finished(path, arguments, run_environment(arguments, suite),
                                           suite.limits, list.cases));
    const std::size_t all = list.cases.size();
    std::erase_if(list.cases, [&](const Case& c) { return !records.lacks(c, rounds - 1); });
    fmt::print(stderr, "longca: {} has {} of the {}\n", printable(path.string()),
               all - list.cases.size(), counted(all, "cell"));
    std::set<std::string> problems;
    for (const Case& c : list.cases) problems.insert(c.problem_key());
    size = {std::ssize(list.cases), std::ssize(problems), size.skipped};
    list.cases.resize(std::min(list.cases.size(), kListedCells));
    if (list.cases.empty()) return;
  }
  print_dry_run(std::cout, list, size, suite.limits, rounds);
}

void run_recorded(const RecordArguments& arguments, const Suite& suite, CaseList list,
                  RunFiles files, const CellsFunction& run_cells) {
  const std::vector<std::string> notices = arguments.notices(suite, list);
  const fs::path path = arguments.output_path(suite);
  if (arguments.out.empty()) {
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    if (error) throw_file_error("make", path.parent_path(), error.value());
  }
  files.writes("--out", path);
  if (!arguments.resume) files.writes("the run", backup_of(follow_links(path)));
  if (arguments.out.empty()) files.writes("the run", page_of(path));
  const nlohmann::json env = run_environment(arguments, suite);
  RunRecords records(arguments.resume
                         ? read_finished(path, arguments, env, suite.limits, list.cases)
                         : std::vector<Record>{});
  const auto say_left = [&](const char* why) {
    say_what_is_left(arguments, why, records, list.cases.size(), path);
  };
  try {
    if (!run_until_signal(arguments, notices, list.cases, path, env, run_cells, records)) {
      const int signal = InterruptGuard::signal();
      say_left(signal != 0 ? kInterrupted : "the launch has lost ranks");
      throw EndedEarly{signal != 0 ? exit_code_of_signal(signal) : kSystemError};
    }
  } catch (const RecordsMoved&) {
    throw;
  } catch (const SystemError&) {
    say_left("ended early");
    throw;
  }
  print_table(std::cout, records.all(), terminal_table_options());
  if (arguments.out.empty()) {
    write_html(records.all(), page_of(path));
    fmt::print("{} and {} written\n", printable(path.string()), printable(page_of(path).string()));
  }
  judge(arguments, records.all());
}

std::vector<Record> run_while(const RecordArguments& arguments, const Suite& suite,
                              std::span<const Case> cases, RunFiles files,
                              const std::function<bool(const Case& c)>& may_begin,
                              const CellsFunction& run_cells) {
  files.writes("--out", arguments.out);
  files.writes("the run", backup_of(follow_links(arguments.out)));
  RunRecords records({});
  const InterruptGuard guard;
  RecordWriter writer(arguments.out, RecordWriter::Mode::replace,
                      arguments.force ? RecordWriter::kAnyNumber : cases.size());
  {
    Progress progress(cases.size(), arguments.progress_style());
    progress.tell_apart(cases);
    RecordListener listener(writer, progress, run_environment(arguments, suite), 1, records);
    for (const Case& c : cases) {
      if (!may_begin(c)) {
        progress.leave_out(1);
      } else if (!run_cells({&c, 1}, listener)) {
        throw EndedEarly{exit_code_of_signal(InterruptGuard::signal())};
      }
    }
  }
  say_where_old_records_are(writer);
  return records.all();
}

}  // namespace longca
