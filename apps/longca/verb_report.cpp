#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "bench/record/origin.h"
#include "bench/record/record.h"
#include "core/error.h"
#include "core/output_file.h"
#include "core/printable.h"
#include "core/run_files.h"
#include "report/csv.h"
#include "report/data/record_filter.h"
#include "report/format.h"
#include "report/html.h"
#include "report/markdown.h"
#include "report/plots.h"
#include "report/table.h"
#include "verbs.h"

namespace longca {
namespace {

struct ReportOptions {
  std::vector<std::string> files;
  std::vector<std::string> axes;
  std::string html;
  std::string csv;
  std::string markdown;
  std::string plots;

  bool wants_table() const {
    return html.empty() && csv.empty() && markdown.empty() && plots.empty();
  }
};

std::vector<Record> read_all(const std::vector<std::string>& files) {
  std::vector<Record> records;
  for (const std::string& file : files) {
    RecordFile found = read_records(file);
    if (found.torn) {
      std::cerr << "longca: the last line of " << printable(file) << " is cut and left out\n";
    }
    std::ranges::move(latest_of_file(found.records), std::back_inserter(records));
  }
  if (records.empty()) {
    throw_input_error("there are no records in {}", fmt::join(files, ", "));
  }
  return records;
}

/// Writes a view into a file, or to standard output for "-".
void write_view(const std::string& file, std::span<const Record> records,
                void (*write)(std::ostream&, std::span<const Record>)) {
  if (file == "-") return write(std::cout, records);
  std::ostringstream text;
  write(text, records);
  replace_file(file, text.view());
}

/// "12 files in plots: .pdf .png .svg".
void print_written(const std::vector<std::filesystem::path>& files, const std::string& directory) {
  std::set<std::string> suffixes;
  for (const auto& file : files) suffixes.insert(file.extension().string());
  std::cout << files.size() << " files in " << printable(directory) << ':';
  for (const std::string& suffix : suffixes) std::cout << ' ' << suffix;
  std::cout << '\n';
}

/// Throws InputError for two views on standard output.
void refuse_mixing(const ReportOptions& options) {
  std::vector<std::string> views;
  for (const auto& [name, file] :
       {std::pair("--csv", options.csv), std::pair("--md", options.markdown),
        std::pair("--html", options.html)}) {
    if (file == "-") views.emplace_back(name);
  }
  if (views.size() < 2) return;
  throw_input_error("{} would both be written to standard output: give one of them a file",
                    fmt::join(views, " and "));
}

void refuse_overwriting(const ReportOptions& options) {
  RunFiles files;
  for (const std::string& file : options.files) files.reads("the report", file);
  files.writes_view("--csv", options.csv);
  files.writes_view("--md", options.markdown);
  files.writes_view("--html", options.html);
  files.writes_pictures("--plots", options.plots);
  if (!options.plots.empty())
    files.writes("--plots", std::filesystem::path(options.plots) / "index.html");
}

void report(const ReportOptions& options) {
  refuse_mixing(options);
  refuse_overwriting(options);
  const std::vector<Record> records = filter_records(read_all(options.files), options.axes);
  if (records.empty()) throw InputError("no record has all of the values given by -a");
  if (options.wants_table()) print_table(std::cout, records, terminal_table_options());
  if (!options.csv.empty()) write_view(options.csv, records, write_csv);
  if (!options.markdown.empty()) write_view(options.markdown, records, write_markdown);
  if (!options.html.empty()) write_view(options.html, records, write_html);
  if (!options.plots.empty()) {
    print_written(write_plots(records, options.plots), options.plots);
  }
}

}  // namespace

void add_report(CLI::App& app) {
  CLI::App* verb =
      app.add_subcommand("report", "Views of records: table, HTML, CSV, Markdown, plots");
  auto options = std::make_shared<ReportOptions>();
  verb->add_option("FILE", options->files, "record files (.jsonl); two builds of a cell are two")
      ->required()
      ->type_name("");
  verb->add_option("-a,--axis", options->axes, "shows only cells with these values; repeatable")
      ->type_name("AXIS=LIST")
      ->allow_extra_args(false);
  verb->add_option("--html", options->html, "one self-contained page with plots")
      ->type_name("FILE");
  verb->add_option("--csv", options->csv, "one line per cell, every axis and metric")
      ->type_name("FILE");
  verb->add_option("--md", options->markdown, "Markdown tables")->type_name("FILE");
  verb->add_option("--plots", options->plots, "figures as PNG, SVG and PDF (needs gnuplot)")
      ->type_name("DIR");
  verb->footer(
      "Without an option: a table on the screen. FILE '-' is standard output.\n"
      "Example: longca report results/quick.jsonl -a mask=causal --html causal.html");
  verb->callback([options] { report(*options); });
}

}  // namespace longca
