#include <cmath>
#include <filesystem>
#include <future>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "bench/compare/compare_records.h"
#include "bench/record/record.h"
#include "bench/run/rounds.h"
#include "core/error.h"
#include "core/output_file.h"
#include "core/printable.h"
#include "core/run_files.h"
#include "report/comparison_text.h"
#include "report/table.h"
#include "turns.h"
#include "usage.h"
#include "verbs.h"

namespace longca {
namespace {

struct CompareArguments {
  std::string base;  ///< with `build` or `commits` a suite, or ""
  std::string next;
  double min_effect_pct = kMinEffect * 100;
  bool across = false;
  bool json = false;
  std::string html;
  std::string build;
  std::vector<std::string> commits;
  std::vector<std::string> axes, plugins;
  std::int64_t rounds = 7;
  std::string out = "results/compare";

  bool runs() const { return !build.empty() || !commits.empty(); }
};

/// Above it nothing would be called a change.
constexpr double kMaxEffectPct = 1000;

double min_effect_of(double pct) {
  if (!std::isfinite(pct) || pct < 0 || pct > kMaxEffectPct) {
    throw_input_error("--min-effect {} is not from 0 to {} %", pct, kMaxEffectPct);
  }
  return pct / 100;
}

std::vector<Record> read_side(const std::string& file) {
  RecordFile found = read_records(file);
  if (found.torn) {
    std::cerr << "longca: the last line of " << printable(file) << " is cut and left out\n";
  }
  if (found.records.empty()) throw_input_error("{} has no records", file);
  return std::move(found.records);
}

void warn_of_same_file(const CompareArguments& arguments) {
  std::error_code error;
  if (!std::filesystem::equivalent(arguments.base, arguments.next, error)) return;
  std::cerr << "longca: BASE and NEW are the same file, " << printable(arguments.base) << '\n';
}

void show(const Comparison& comparison, const ComparedNames& names,
          const CompareArguments& arguments) {
  for (const std::string& note : comparison.notes) std::cerr << "longca: " << note << '\n';
  if (!arguments.html.empty()) {
    std::ostringstream page;
    write_comparison_html(page, comparison, names);
    if (arguments.html == "-") {
      std::cout << page.view();
    } else {
      replace_file(arguments.html, page.view());
    }
  }
  if (arguments.json) {
    const auto json = comparison_json(comparison, names);
    std::cout << printable_json(json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace))
              << '\n';
  } else if (arguments.html != "-") {
    print_comparison(std::cout, comparison, names, terminal_table_options());
  }
}

/// Compares two files.
Comparison compare_files(const CompareArguments& arguments, const CompareOptions& options) {
  RunFiles files;
  files.reads("BASE", arguments.base);
  files.reads("NEW", arguments.next);
  files.writes_view("--html", arguments.html);
  // Side by side: reading is nearly all the work.
  auto reading = std::async(std::launch::async, [&] { return read_side(arguments.next); });
  const std::vector<Record> base = read_side(arguments.base);
  const std::vector<Record> next = reading.get();
  warn_of_same_file(arguments);
  return compare_records(base, next, options);
}

/// Runs two programs in turns and compares them.
Comparison compare_programs(const CompareArguments& arguments, const CompareOptions& options,
                            ComparedNames& names) {
  check_rounds(arguments.rounds);
  RunFiles files;
  for (const std::string& plugin : arguments.plugins) files.reads("--plugin", plugin);
  files.writes_view("--html", arguments.html);
  files.writes("--out", std::filesystem::path(arguments.out) / "base.jsonl");
  files.writes("--out", std::filesystem::path(arguments.out) / "new.jsonl");
  if (!arguments.html.empty() && arguments.html != "-") {
    const OutputFile can_be_written(arguments.html);  // before anything is measured
  }
  Turns turns{
      arguments.build, own_program(), {}, static_cast<int>(arguments.rounds), arguments.out};
  names = {arguments.build, "this program"};
  if (!arguments.commits.empty()) {
    const CommitPrograms programs = build_commits(arguments.commits[0], arguments.commits[1]);
    turns.base = programs.base;
    turns.next = programs.next;
    names = {arguments.commits[0], arguments.commits[1]};
  }
  if (!arguments.base.empty()) turns.arguments.push_back(arguments.base);
  for (const std::string& axis : arguments.axes) {
    turns.arguments.insert(turns.arguments.end(), {"-a", axis});
  }
  for (const std::string& plugin : arguments.plugins) {
    turns.arguments.insert(turns.arguments.end(), {"--plugin", plugin});
  }
  const TurnRecords records = run_in_turns(turns);
  return compare_records(records.base, records.next, options);
}

void check_names(const CompareArguments& arguments) {
  if (!arguments.build.empty() && !arguments.commits.empty()) {
    throw InputError("--build and --commits both say what to compare: give one of them");
  }
  if (arguments.runs()) {
    if (arguments.next.empty()) return;
    throw_input_error("{} measures both sides itself: it takes a suite, not the files BASE and NEW",
                      arguments.build.empty() ? "--commits" : "--build");
  }
  if (!arguments.axes.empty()) throw InputError("-a chooses what --build and --commits run");
  if (!arguments.plugins.empty()) {
    throw InputError("--plugin gives kernels to what --build and --commits run");
  }
  const CompareArguments standard;
  if (arguments.rounds != standard.rounds || arguments.out != standard.out) {
    throw InputError("--rounds and --out are of what --build and --commits run");
  }
  if (arguments.next.empty()) {
    throw InputError("BASE and NEW are missing: two record files, or --build OTHER");
  }
}

void compare(const CompareArguments& arguments) {
  const CompareOptions options{min_effect_of(arguments.min_effect_pct), arguments.across};
  if (arguments.json && arguments.html == "-") {
    throw InputError("--json and --html - both go to standard output");
  }
  check_names(arguments);
  ComparedNames names;
  Comparison comparison;
  if (arguments.runs()) {
    comparison = compare_programs(arguments, options, names);
  } else {
    names = {arguments.base, arguments.next};
    comparison = compare_files(arguments, options);
  }
  show(comparison, names, arguments);
  if (comparison.has_regression()) throw VerdictFailed{};
}

}  // namespace

void add_compare(CLI::App& app) {
  CLI::App* verb =
      app.add_subcommand("compare", "What two record files say became slower or faster");
  auto arguments = std::make_shared<CompareArguments>();
  verb->add_option("BASE", arguments->base, "record file; with --build a SUITE, or nothing")
      ->type_name("");
  verb->add_option("NEW", arguments->next, "record file that is judged")->type_name("");
  verb->add_option("--min-effect", arguments->min_effect_pct, "the least change that matters (1)")
      ->type_name("PCT");
  verb->add_flag("--across", arguments->across, "compare records of another processor or GPU");
  verb->add_flag("--json", arguments->json, "for programs: every cell and the counts");
  verb->add_option("--html", arguments->html, "a page with a plot of the ratios")
      ->type_name("FILE");
  verb->add_option("--build", arguments->build, "run another longca and this one, in turns")
      ->type_name("OTHER");
  verb->add_option("--commits", arguments->commits, "build two commits and run them in turns")
      ->expected(2)
      ->allow_extra_args(false)  // a suite may follow
      ->type_name("A B")
      ->option_text("A B");
  verb->add_option("-a,--axis", arguments->axes, "what they run, as tokens=8K; repeatable")
      ->type_name("AXIS=LIST")
      ->allow_extra_args(false);
  add_plugin_option(*verb, arguments->plugins);
  verb->add_option("--rounds", arguments->rounds, "how often each of them runs (7)")
      ->type_name("N");
  verb->add_option("--out", arguments->out, "where their records go (results/compare)")
      ->type_name("DIR");
  verb->footer(
      "Exit code 1 if a cell is slower or broken. Records of `--rounds 7` tell changes\n"
      "of 1 to 3 %; of one round, changes beyond 5 %.\n"
      "Example: longca compare before.jsonl after.jsonl --html changes.html");
  verb->callback([arguments] { compare(*arguments); });
}

}  // namespace longca
