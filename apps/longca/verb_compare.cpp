#include <cmath>
#include <filesystem>
#include <future>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "bench/compare/compare_records.h"
#include "bench/record/record.h"
#include "core/error.h"
#include "core/output_file.h"
#include "core/printable.h"
#include "core/run_files.h"
#include "report/comparison_text.h"
#include "report/table.h"
#include "verbs.h"

namespace longca {
namespace {

struct CompareArguments {
  std::string base;
  std::string next;
  double min_effect_pct = kMinEffect * 100;
  bool across = false;
  bool json = false;
  std::string html;
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
    std::cout << json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  } else if (arguments.html != "-") {
    print_comparison(std::cout, comparison, names, terminal_table_options());
  }
}

void compare(const CompareArguments& arguments) {
  const CompareOptions options{min_effect_of(arguments.min_effect_pct), arguments.across};
  if (arguments.json && arguments.html == "-") {
    throw InputError("--json and --html - both go to standard output");
  }
  RunFiles files;
  files.reads("BASE", arguments.base);
  files.reads("NEW", arguments.next);
  files.writes("--html", arguments.html);
  // Side by side: reading is nearly all the work.
  auto reading = std::async(std::launch::async, [&] { return read_side(arguments.next); });
  const std::vector<Record> base = read_side(arguments.base);
  const std::vector<Record> next = reading.get();
  warn_of_same_file(arguments);
  const Comparison comparison = compare_records(base, next, options);
  show(comparison, {arguments.base, arguments.next}, arguments);
  if (comparison.has_regression()) throw VerdictFailed{};
}

}  // namespace

void add_compare(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("compare", "What two records say became slower or faster");
  auto arguments = std::make_shared<CompareArguments>();
  verb->add_option("BASE", arguments->base, "record file (.jsonl) to compare with")
      ->required()
      ->type_name("");
  verb->add_option("NEW", arguments->next, "record file that is judged")->required()->type_name("");
  verb->add_option("--min-effect", arguments->min_effect_pct, "the least change that matters (1)")
      ->type_name("PCT");
  verb->add_flag("--across", arguments->across, "compare records of another processor or GPU");
  verb->add_flag("--json", arguments->json, "for programs: every cell and the counts");
  verb->add_option("--html", arguments->html, "a page with a plot of the ratios")
      ->type_name("FILE");
  verb->footer(
      "Exit code 1 if a cell is slower or broken. Records of `--rounds 7` tell changes\n"
      "of 1 to 3 %; of one round, changes beyond 5 %.\n"
      "Example: longca compare before.jsonl after.jsonl --html changes.html");
  verb->callback([arguments] { compare(*arguments); });
}

}  // namespace longca
