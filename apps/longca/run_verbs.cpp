#include "run_verbs.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "bench/plugin_loader.h"
#include "bench/record/environment.h"
#include "bench/record/origin.h"
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

/// This process's arguments, from the system; the program without its folder, which means nothing
/// on another machine.
std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  if (!arguments.empty()) arguments.front() = fs::path(arguments.front()).filename().string();
  return arguments;
}

/// The records of a run: those that the file had, and what rounds add to them.
class RunRecords {
 public:
  explicit RunRecords(std::vector<Record> finished) : records_(std::move(finished)) {
    for (std::size_t i = 0; i < records_.size(); ++i) {
      places_[records_[i].c.key()] = i;
      measured_ += rounds_of_record(records_[i]);
    }
    written_ = records_.size();
  }

  /// Whether the cell has to run in this round, counted from 0: it has not failed and lacks it.
  bool lacks(const Case& c, int round) const {
    const auto place = places_.find(c.key());
    if (place == places_.end()) return true;
    const Record& record = records_[place->second];
    return record.status.ok() && rounds_of_record(record) <= static_cast<std::size_t>(round);
  }
  /// The cell's record, now with one round more.
  const Record& add(const Record& round, bool in_rounds) {
    const auto [place, is_new] = places_.try_emplace(round.c.key(), records_.size());
    if (is_new) {
      records_.push_back(in_rounds ? with_round(Record{}, round) : round);
    } else {
      records_[place->second] = with_round(records_[place->second], round);
    }
    return records_[place->second];
  }
  const std::vector<Record>& all() const { return records_; }

  /// To be called once what was added is in the file.
  void note_written() {
    written_ = records_.size();
    ++measured_;
  }
  /// How many cells the file has records of, and rounds of cells; for any thread.
  std::size_t written() const { return written_; }
  std::size_t measured() const { return measured_; }

 private:
  std::vector<Record> records_;
  std::atomic<std::size_t> written_ = 0;
  std::atomic<std::size_t> measured_ = 0;
  std::unordered_map<std::string, std::size_t> places_;
};

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

/// Where the masks of the user's own are, by name; pictures of them are drawn from there.
nlohmann::json own_masks(const Suite& suite) {
  nlohmann::json paths = nlohmann::json::object();
  const auto masks = suite.axes.find("mask");
  if (masks == suite.axes.end()) return paths;
  for (const std::string& name : masks->second) {
    if (const OwnMask* own = find_own_mask(name)) paths[name] = own->path.string();
  }
  return paths;
}

/// The `env` of this run's records.
nlohmann::json run_environment(const RecordArguments& arguments, const Suite& suite) {
  nlohmann::json env = collect_environment();
  env["argv"] = own_arguments();
  env["plugins"] = describe_plugins(arguments.plugins);
  if (nlohmann::json masks = own_masks(suite); !masks.empty()) env["masks"] = std::move(masks);
  env["limits"] = {{"time_limit_s", suite.limits.time_limit_s},
                   {"sample_budget_s", suite.limits.sample_budget_s},
                   {"case_limit_s", suite.limits.case_limit_s}};
  if (arguments.round_count() > 1) {
    env["rounds"] = {{"count", arguments.round_count()}, {"seed", std::random_device{}()}};
  }
  return env;
}

/// Throws InputError if the file has records of another machine, commit or plug-in.
void refuse_other_origins(const fs::path& path, std::span<const Record> records,
                          const nlohmann::json& env) {
  const Origin here = origin_of(env);
  for (const auto& [origin, cells] : origins_of(records)) {
    const std::string differs = difference(origin, here);
    if (differs.empty()) continue;
    throw_input_error("--resume would mix {} of {} with others, for {}: add --across to do so",
                      counted(cells, "cell"), path.string(), differs);
  }
}

/// Whether a cell is tried again: it was ended by a limit lower than the present one, or by one
/// that its record does not say.
bool is_worth_another_try(const Record& record, const RunLimits& limits) {
  if (record.status.code != StatusCode::timeout) return false;
  const nlohmann::json::json_pointer place("/limits/case_limit_s");
  if (!record.env->contains(place) || !record.env->at(place).is_number()) return true;
  return record.env->at(place).get<double>() < limits.case_limit_s;
}

/// Leaves out cells that lack rounds and were begun by another origin: rounds of two origins are
/// never joined, so that all rounds of these cells are measured anew.
void leave_out_foreign_rounds(const fs::path& path, int rounds, const nlohmann::json& env,
                              std::vector<Record>& finished) {
  const Origin here = origin_of(env);
  const auto left_out = std::erase_if(finished, [&](const Record& record) {
    return record.status.ok() && rounds_of_record(record) < static_cast<std::size_t>(rounds) &&
           !difference(origin_of(*record.env), here).empty();
  });
  if (left_out == 0) return;
  fmt::print(stderr,
             "longca: {} of {} lack{} rounds and {} begun elsewhere: all {} rounds are measured "
             "here\n",
             counted(left_out, "cell"), printable(path.string()), left_out == 1 ? "s" : "",
             left_out == 1 ? "was" : "were", rounds);
}

/// The file's records of these cases, without those that are tried again.
std::vector<Record> read_finished(const fs::path& path, const RecordArguments& arguments,
                                  const nlohmann::json& env, const RunLimits& limits,
                                  std::span<const Case> cases) {
  if (!fs::exists(path)) return {};
  std::vector<Record> finished = latest_records(read_records(path).records);
  if (!arguments.across) refuse_other_origins(path, finished, env);
  std::unordered_set<std::string> wanted;
  for (const Case& c : cases) wanted.insert(c.key());
  std::erase_if(finished, [&](const Record& record) {
    return !wanted.contains(record.c.key()) || is_worth_another_try(record, limits);
  });
  if (arguments.across) leave_out_foreign_rounds(path, arguments.round_count(), env, finished);
  return finished;
}

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
  std::map<std::string_view, std::vector<std::string_view>> of_axes;
  for (const std::string_view axis : axes) of_axes[axis.substr(0, axis.find('='))].push_back(axis);
  for (const auto& [name, given] : of_axes) {
    if (given.size() == 1) continue;
    lines.push_back(fmt::format("-a {} is given {} times: the last one counts, {}", name,
                                given.size(), printable(given.back())));
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
