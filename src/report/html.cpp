#include "report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <sstream>
#include <unordered_map>

#include "bench/record/environment.h"
#include "bench/record/metrics.h"
#include "bench/record/origin.h"
#include "core/counted.h"
#include "core/error.h"
#include "core/output_file.h"
#include "report/html_data.h"
#include "report/html_text.h"
#include "report/own_masks.h"
#include "report/page_title.h"
#include "report/view.h"

namespace longca {
namespace {

constexpr const char* kNoPlotly =
    "This page has no plots: plotly.js was not found when it was written. scripts/setup fetches "
    "it, or LONGCA_PLOTLY_JS names a plotly.min.js.";

/// plotly and what runs it.
std::string plotly_scripts(const std::string& plotly) {
  return fmt::format("<script type=\"text/plain\" id=\"plotly\">{}</script>\n<script>\n{}</script>",
                     packed_for_html(compiled_at_once(plotly)), script_for_html(kPlotlyScript));
}

std::string tiles(std::span<const Record> records) {
  std::map<StatusCode, int> counts;
  for (const Record& record : records) ++counts[record.status.code];
  std::string html = fmt::format("<li><b>{}</b>cells</li>", records.size());
  for (const auto& [status, n] : counts) {
    html += fmt::format(
        R"(<li><button type="button" class="status-{0}" data-status="{0}"><b>{1}</b>{0}</button></li>)",
        to_string(status), n);
  }
  return html;
}

/// A string without quotes, anything else as JSON.
std::string plain_text(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Adds a row per value, named by the keys on its path; a list of plain values is one row.
void add_environment_rows(std::string& html, const std::string& name, const nlohmann::json& value) {
  const auto is_plain = [](const nlohmann::json& item) { return item.is_primitive(); };
  std::string text;
  if (value.is_array() && std::all_of(value.begin(), value.end(), is_plain)) {
    for (const nlohmann::json& item : value) {
      text += fmt::format("{}{}", text.empty() ? "" : " ", plain_text(item));
    }
  } else if (value.is_structured()) {
    for (const auto& [key, item] : value.items()) {
      add_environment_rows(html, name.empty() ? key : fmt::format("{} {}", name, key), item);
    }
  } else {
    text = plain_text(value);
  }
  if (text.empty()) return;
  html += fmt::format("<tr><td>{}</td><td>{}</td></tr>", html_escaped(name), html_escaped(text));
}

/// A distinct environment and how many cells have it.
struct Environment {
  const nlohmann::json* env;
  int cells;
};

/// In order of first appearance.
std::vector<Environment> distinct_environments(std::span<const Record> records) {
  std::vector<Environment> environments;
  std::unordered_map<std::string, std::size_t> places;
  for (const Record& record : records) {
    const auto [place, is_new] = places.try_emplace(plain_text(record.env), environments.size());
    if (is_new) environments.push_back({&*record.env, 0});
    ++environments[place->second].cells;
  }
  return environments;
}

std::string environment_tables(std::span<const Environment> environments) {
  constexpr std::size_t kMaxTables = 100;
  std::string html;
  for (std::size_t i = 0; i < std::min(environments.size(), kMaxTables); ++i) {
    html += fmt::format("<p class=\"hint\">{}</p><table class=\"plain environment\">",
                        counted(environments[i].cells, "cell"));
    add_environment_rows(html, "", *environments[i].env);
    html += "</table>\n";
  }
  if (environments.size() > kMaxTables) {
    html += fmt::format("<p class=\"hint\">and {} more environments, which the records have</p>\n",
                        environments.size() - kMaxTables);
  }
  return html;
}

/// "" if there is one: then the heading names its machine.
std::string several_origins(std::span<const Record> records) {
  return origins_of(records).size() > 1 ? describe_origins(records) : "";
}

std::string environments_summary(std::span<const Environment> environments) {
  return fmt::format("{}: machine, versions, command line",
                     counted(environments.size(), "environment"));
}

std::string metric_rows() {
  std::string html;
  for (const MetricInfo& metric : metric_table()) {
    html += fmt::format("<tr><td class=\"mono\">{}</td><td>{}</td><td>{}</td></tr>\n", metric.name,
                        html_escaped(metric.unit), html_escaped(metric.description));
  }
  return html;
}

/// "2026-05-01T10:00:00Z to 2026-05-01T10:02:00Z".
std::string when(std::span<const Record> records) {
  std::set<std::string> times;
  for (const Record& record : records) {
    if (!record.at.empty()) times.insert(record.at);
  }
  if (times.empty()) return "";
  if (times.size() == 1) return *times.begin();
  return *times.begin() + " to " + *times.rbegin();
}

}  // namespace

std::string render_html(std::span<const Record> records, const std::optional<std::string>& plotly) {
  const std::vector<Record> latest = latest_of_each_build(records);
  const SplitRecords split = split_records(latest);
  const View single = make_view(split.single);
  const View over_ranks = make_view(split.over_ranks);
  const std::string heading = page_heading(latest);
  const std::vector<Environment> environments = distinct_environments(latest);
  return fill_template(
      kPageHtml, {{"title", html_escaped("longca-bench: " + heading)},
                  {"style", std::string(kStyleCss)},
                  {"heading", html_escaped(heading)},
                  {"origins", html_escaped(several_origins(latest))},
                  {"time", html_escaped(when(latest))},
                  {"tiles", tiles(latest)},
                  {"warning", plotly ? "" : fmt::format("<p class=\"warning\">{}</p>", kNoPlotly)},
                  {"pictures", html_pictures(single, over_ranks, own_masks_of(latest))},
                  {"metrics", metric_rows()},
                  {"environments", environments_summary(environments)},
                  {"environment", environment_tables(environments)},
                  {"data", json_for_script(html_data(split))},
                  {"plotly", plotly ? plotly_scripts(*plotly) : ""},
                  {"script", script_for_html(kPageScript)}});
}

void write_html(std::ostream& out, std::span<const Record> records) {
  std::optional<std::string> plotly;
  if (const auto file = find_plotly_js()) {
    std::ifstream in(*file, std::ios::binary);
    plotly.emplace(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    if (!in.is_open() || plotly->empty()) throw_input_error("cannot read {}", file->string());
  } else {
    std::cerr << "longca: " << kNoPlotly << '\n';
  }
  out << render_html(records, plotly);
}

void write_html(std::span<const Record> records, const std::filesystem::path& path) {
  std::ostringstream page;
  write_html(page, records);
  replace_file(path, page.view());
}

}  // namespace longca
