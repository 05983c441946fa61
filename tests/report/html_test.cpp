#include "report/html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>

#include "bench/expect_input_error.h"
#include "bench/record/environment.h"
#include "core/error.h"
#include "core/printable.h"
#include "report/data/series_colors.h"
#include "report/golden.h"
#include "report/html_data.h"
#include "report/html_text.h"
#include "report/page_title.h"
#include "report/sample_records.h"
#include "report/sparse_records.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

using nlohmann::json;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

/// The page without what stands between `begin` and `end`.
std::string without(std::string page, const std::string& begin, const std::string& end) {
  for (std::size_t at = page.find(begin); at != std::string::npos; at = page.find(begin, at + 1)) {
    const std::size_t from = at + begin.size();
    page.replace(from, page.find(end, from) - from, "…");
  }
  return page;
}

std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t from = text.find(begin) + begin.size();
  return text.substr(from, text.find(end, from) - from);
}

json data_of(const std::string& page) {
  return json::parse(between(page, R"(id="data">)", "</script>"));
}

TEST(Html, Golden) {
  std::string page = render_html(sample_records(), std::nullopt);
  page = without(std::move(page), "<style>", "</style>");
  page = without(std::move(page), "<script>", "</script>");
  page = without(std::move(page), R"(id="data">)", "</script>");
  page = without(std::move(page), " d=\"", "\"");
  expect_golden(page, "page.html");
}

/// The colours of a style's scheme: "--card" and so on.
std::string scheme_color(const std::string& scheme, const std::string& name) {
  return between(scheme, name + ": ", ";");
}

TEST(Html, TextsStandOutFromTheirGroundInBothSchemes) {
  const std::string style =
      between(render_html(sample_records(), std::nullopt), "<style>", "</style>");
  const std::string light = between(style, ":root {", "}");
  const std::string dark =
      between(style.substr(style.find("prefers-color-scheme: dark")), ":root {", "}");
  EXPECT_EQ(scheme_color(dark, "--card"), kDarkGround);
  for (const std::string& scheme : {light, dark}) {
    for (const char* text : {"--ink", "--soft", "--accent", "--good", "--warn", "--bad"}) {
      for (const char* ground : {"--card", "--ground"}) {
        EXPECT_GE(contrast(scheme_color(scheme, text), scheme_color(scheme, ground)), kMinContrast)
            << text << " on " << ground;
      }
    }
    EXPECT_GE(contrast(scheme_color(scheme, "--ink"), scheme_color(scheme, "--accent-soft")),
              kMinContrast);
    EXPECT_GE(contrast(scheme_color(scheme, "--mask"), scheme_color(scheme, "--mask-ground")), 3);
  }
}

/// JSON with an object or list of objects per line.
std::string lines_of(const json& data) {
  std::string text = data.dump() + "\n";
  for (std::size_t at = text.find("},{"); at != std::string::npos; at = text.find("},{", at + 4)) {
    text.insert(at + 2, "\n");
  }
  return text;
}

TEST(Html, DataGolden) {
  const std::vector<Record> records = sample_records();
  expect_golden(lines_of(html_data(split_records(records))), "page_data.json");
}

TEST(Html, OverRanksDataGolden) {
  std::vector<Record> records = over_ranks_records();
  const std::vector<Record> single = one_device_records();
  records.insert(records.end(), single.begin(), single.end());
  expect_golden(lines_of(html_data(split_records(records))), "page_data_ranks.json");
}

/// The cells' values of a column, as the page decodes them.
std::vector<json> column_of(const json& data, const std::string& name) {
  const json& column = data.at("cells").at("columns").at(name);
  std::vector<json> values;
  for (std::size_t run = 0; run < column.at("runs").size(); run += 2) {
    const json& value = column.at("values").at(column.at("runs").at(run).get<std::size_t>());
    values.insert(values.end(), column.at("runs").at(run + 1).get<std::size_t>(), value);
  }
  return values;
}

/// The cells' values of a metric; null where a cell has none.
std::vector<json> metrics_of(const json& data, const std::string& name) {
  const json& metrics = data.at("cells").at("metrics");
  std::vector<json> values;
  for (const json& row : metrics.at("rows")) {
    const json& names = metrics.at("sets").at(row.at(0).get<std::size_t>());
    const auto place = std::find(names.begin(), names.end(), name) - names.begin();
    const auto at = static_cast<std::size_t>(place);
    values.push_back(at < names.size() ? row.at(at + 1) : json());
  }
  return values;
}

TEST(Html, CellsReadBackAsTheRecords) {
  const std::vector<Record> records = sample_records();
  const SplitRecords split = split_records(records);
  const json data = html_data(split);
  const std::vector<const Record*> cells = make_view(split.single).records();
  EXPECT_EQ(data.at("cells").at("count"), cells.size());
  const auto kernels = column_of(data, "kernel");
  const auto masks = column_of(data, "mask");
  const auto statuses = column_of(data, "status");
  const auto times = metrics_of(data, "time_ms");
  for (std::size_t i = 0; i < cells.size(); ++i) {
    EXPECT_EQ(kernels[i], cells[i]->c.kernel);
    EXPECT_EQ(masks[i], cells[i]->c.mask);
    EXPECT_EQ(statuses[i], to_string(cells[i]->status.code));
    const auto time = metric_of(cells[i], "time_ms");
    ASSERT_EQ(times[i].is_number(), time.has_value());
    if (time) {
      EXPECT_NEAR(times[i].get<double>(), *time, 1e-4 * *time);
    }
    const json& samples = data.at("cells").at("samples").at(i);
    ASSERT_EQ(samples.size(), cells[i]->samples_ms.empty() ? 0 : cells[i]->samples_ms.size() + 1);
    for (std::size_t s = 0; s + 1 < samples.size(); ++s) {
      const double ms = samples[0].get<double>() * (1 + samples[s + 1].get<double>() / 1e4);
      EXPECT_NEAR(ms, cells[i]->samples_ms[s], 1e-4 * ms);
    }
  }
}

TEST(Html, ProblemsAreRankedAsInTables) {
  std::vector<Record> records = sample_records();
  const json data = html_data(split_records(records));
  const json& kind = data.at("kinds").at(0);
  const json& full = kind.at("problems").at(0);
  EXPECT_EQ(full.at("mask"), "full");
  EXPECT_EQ(kind.at("columns").at(full.at("column").get<std::size_t>()), "1K");
  const json& winner = full.at("forward").at("tied").at(0);
  EXPECT_EQ(kind.at("series").at(winner.at(0).get<std::size_t>()).at("name"), "flash");
  EXPECT_EQ(column_of(data, "kernel").at(winner.at(1).get<std::size_t>()), "flash");
  EXPECT_GT(full.at("forward").at("lead"), 10);
  const double both = full.at("forward").at("tied").at(0).at(2).get<double>() +
                      full.at("backward").at("tied").at(0).at(2).get<double>();
  EXPECT_NEAR(full.at("step").at("tied").at(0).at(2).get<double>(), both, 1e-3 * both);
}

TEST(Html, TwoMachinesAreAChoiceAndNeverAMix) {
  std::vector<Record> records = sample_records();
  records.resize(6);  // the other machine has more
  for (Record record : sample_records()) {
    record.env.own()["cpu"]["model"] = "Other CPU";
    records.push_back(std::move(record));
  }
  const json data = html_data(split_records(records));
  const json& kind = data.at("kinds").at(0);
  ASSERT_EQ(kind.at("axes").size(), 1U);
  EXPECT_EQ(kind.at("axes").at(0).at("name"), "machine");
  EXPECT_EQ(kind.at("axes").at(0).at("chosen"), "Other CPU, 2 cores");
  for (const json& problem : kind.at("problems")) {
    EXPECT_TRUE(problem.at("setting").contains("machine"));
  }
  for (const json& figure : kind.at("figures")) {
    for (const json& panel : figure.at("panels")) {
      EXPECT_TRUE(panel.at("setting").contains("machine"));
    }
  }
}

TEST(Html, TheDenseKernelIsNamedWithInputsThatDiffer) {
  std::vector<Record> records = sparse_records();
  const auto named = [&](const std::string& name) {
    const std::vector<json> kernels = column_of(html_data(split_records(records)), "dense");
    return std::find(kernels.begin(), kernels.end(), json(name)) != kernels.end();
  };
  EXPECT_TRUE(named("fa3"));
  for (Record& record : records) {
    if (record.c.density) record.c.inputs = "clustered";
  }
  EXPECT_FALSE(named("fa3"));
  EXPECT_TRUE(named("fa3 (inputs normal)"));
}

TEST(Html, BlockSparseCellsKnowTheirRatioToDense) {
  const std::vector<Record> records = joined(sparse_records(), selected_records());
  const json data = html_data(split_records(records));
  const auto masks = column_of(data, "mask");
  const auto statuses = column_of(data, "status");
  const auto tokens = column_of(data, "tokens");
  const auto settings = column_of(data, "setting");
  const auto ratios = metrics_of(data, "of_dense");
  std::size_t cells = 0;
  for (std::size_t i = 0; i < masks.size(); ++i) {
    const bool has_dense =
        masks[i] == "block_sparse" && (tokens[i] == 32768 || settings[i].at("heads") == "64:8");
    EXPECT_EQ(ratios[i].is_number(), has_dense && statuses[i] == "ok");
    cells += masks[i] == "block_sparse" ? 1 : 0;
  }
  EXPECT_EQ(cells, 2U * 2 * 2 * 2 * 3 * 4 + 3 * 2);
  EXPECT_EQ(
      html_data(split_records(sample_records())).at("cells").at("columns").count("break_even"), 0U);
}

TEST(Html, CellsOverRanksAreAKindOfTheirOwnAndComeFirst) {
  const json single = html_data(split_records(sample_records()));
  ASSERT_EQ(single.at("kinds").size(), 1U);
  EXPECT_EQ(single.at("kinds").at(0).at("kind"), "devices");
  std::vector<Record> records = sample_records();
  const std::vector<Record> over_ranks = over_ranks_records();
  records.insert(records.end(), over_ranks.begin(), over_ranks.end());
  const json both = html_data(split_records(records));
  ASSERT_EQ(both.at("kinds").size(), 2U);
  EXPECT_EQ(both.at("kinds").at(0).at("kind"), "ranks");
  EXPECT_THAT(render_html(over_ranks, std::nullopt),
              HasSubstr("<h1>Context parallelism over 1, 2 and 4 ranks</h1>"));
}

TEST(Html, TheHeadingSaysWhatWasSimulated) {
  std::vector<Record> records = over_ranks_records();
  for (Record& record : records) record.c.platform = "h100x8_ib400";
  EXPECT_EQ(page_heading(records),
            "Context parallelism over 1, 2 and 4 ranks, simulated on h100x8_ib400");
  records[0].c.platform = "h200x8_ib400";
  EXPECT_THAT(page_heading(records), EndsWith(", simulated on h200x8_ib400 and h100x8_ib400"));
  records[0].c.platform.reset();
  // The machine of those that ran, not the one that simulated the others.
  for (Record& record : records) record.env.own()["cpu"] = {{"model", "Simulating CPU"}};
  records[0].env.own()["cpu"] = {{"model", "Example CPU"}};
  for (Record& record : records) record.c.device = "cpu";
  EXPECT_EQ(page_heading(records),
            "Context parallelism over 1, 2 and 4 ranks on Example CPU, in part simulated on "
            "h100x8_ib400");
}

TEST(Html, AMaskIsDrawnOnceAtTheMiddleOfItsLengths) {
  const std::string page = render_html(over_ranks_records(), std::nullopt);
  const std::string own = between(page, "data-mask=\"causal_document\"", "</figure>");
  EXPECT_THAT(own, HasSubstr("2K tokens"));
  EXPECT_EQ(page.find("data-mask=\"causal_document\""),
            page.rfind("data-mask=\"causal_document\""));
}

TEST(Html, MarkupInRecordsStaysText) {
  const std::string page = render_html(hostile_records(), std::nullopt);
  EXPECT_THAT(page, Not(HasSubstr("<script>document")));
  const std::vector<json> reasons = column_of(data_of(page), "reason");
  EXPECT_TRUE(std::ranges::any_of(reasons, [](const json& reason) {
    return reason.is_string() &&
           reason.get<std::string>().find(printable(kHostileText)) != std::string::npos;
  }));
}

TEST(Html, TheDataAreInTheOrderToShow) {
  const json data = data_of(render_html(sample_records(), std::nullopt));
  const json& kind = data.at("kinds").at(0);
  EXPECT_EQ(kind.at("columns"), json({"1K", "4K"}));
  std::vector<std::string> masks;
  for (const json& panel : kind.at("figures").at(0).at("panels")) masks.push_back(panel.at("mask"));
  EXPECT_EQ(masks, (std::vector<std::string>{"full", "sliding_window_causal", "causal_document",
                                             "block_sparse"}));
  EXPECT_EQ(data.at("cells").at("count"), sample_records().size());
}

TEST(Html, HasAPictureOfEachMask) {
  const std::string page = render_html(all_mask_records(), std::nullopt);
  for (const MaskTraits& mask : mask_table()) {
    EXPECT_THAT(page, HasSubstr("data-mask=\"" + mask.name + "\" data-axes="));
  }
}

/// Lists of 2^23 blocks each: a page draws no more than a few of them, whatever it has cells of.
TEST(Html, PicturesHaveABudgetTogether) {
  constexpr std::size_t kMasks = 40;
  std::vector<Record> records(kMasks, sparse_records()[0]);
  for (std::size_t i = 0; i < kMasks; ++i) {
    Case& c = records[i].c;
    c.mask = "block_sparse";
    c.tokens = std::int64_t{1} << 18;
    c.block = 64;
    c.block_heads = "kv";
    c.density = 0.5 + static_cast<double>(i) / 1000;
  }
  const std::string page = render_html(records, std::nullopt);
  std::size_t drawn = 0;
  for (std::size_t at = page.find("data-mask="); at != page.npos;
       at = page.find("data-mask=", at + 1)) {
    ++drawn;
  }
  EXPECT_GE(drawn, 1U);
  EXPECT_LE(drawn, 4U);
  EXPECT_THAT(page, HasSubstr(std::to_string(kMasks - drawn) + " masks are not drawn"));
  EXPECT_EQ(data_of(page)["cells"]["count"], kMasks);
}

TEST(Html, AMaskThatCannotBeDrawnStillHasItsCells) {
  std::vector<Record> records = sample_records();
  for (Record& record : records) record.c.mask = "a_mask_of_tomorrow";
  records.resize(1);
  const std::string page = render_html(records, std::nullopt);
  EXPECT_THAT(page, Not(HasSubstr("class=\"picture\"")));
  EXPECT_THAT(page, HasSubstr("1 mask is not drawn"));
  EXPECT_EQ(data_of(page)["cells"]["count"], 1);
}

RC_GTEST_PROP(Html, AnyAxisValuesOfARecordGiveAPage, ()) {
  const auto number = rc::gen::element<std::int64_t>(std::numeric_limits<std::int64_t>::min(), -1,
                                                     0, 1, 7, 4096, 1 << 24, 1000000000000,
                                                     std::numeric_limits<std::int64_t>::max());
  const auto count = rc::gen::element(std::numeric_limits<int>::min(), -1, 0, 1, 3, 1 << 30);
  Record record = sample_records()[0];
  record.c.mask = mask_table()[*rc::gen::inRange<std::size_t>(0, mask_table().size())].name;
  record.c.tokens = *number;
  record.c.heads_q = *count;
  record.c.heads_k = *count;
  record.c.window = *number;
  record.c.block_tokens = *number;
  record.c.block = *number;
  record.c.density = *rc::gen::element(-1.0, 0.0, 1e-300, 0.5, 1.0, 1e300);
  record.c.lengths = *rc::gen::element<std::string>("", "prolong64k", "nonsense");
  record.c.block_heads = *rc::gen::element<std::string>("kv", "nonsense");
  if (*rc::gen::arbitrary<bool>()) record.c.scheme = "usp";
  record.c.ranks = *count;
  record.c.factor = *count;
  record.metrics = {{"tflops", *rc::gen::element(-1.0, 0.0, 1e-300, 1e300)},
                    {"time_ms", 1e300},
                    {"peak_bytes", -1e300}};
  RC_ASSERT(render_html(std::vector{record}, std::nullopt).find("</html>") != std::string::npos);
}

TEST(Html, PackedBytesAreBase64OfAZlibStream) {
  EXPECT_EQ(packed_for_html(""), "eJwDAAAAAAE=");
  EXPECT_EQ(packed_for_html("a"), "eJxLBAAAYgBi");
  EXPECT_EQ(packed_for_html("ab"), "eJxLTAIAASYAxA==");
}

TEST(Html, TheWrapperOfPlotlyIsReadOnce) {
  const std::string wrapper =
      "/* plotly.js */\n(function(root, factory) { root.moduleName = factory(); }(self";
  EXPECT_EQ(compiled_at_once(wrapper + ", () => {\n\"use strict\";var a = (() => {})();\n}));\n"),
            wrapper + ", (() => {\n\"use strict\";var a = (() => {})();\n})));\n");
  for (const char* other : {"", "var Plotly = {};", "}));", ", () => {\n\"use strict\";\n",
                            "!function(t){}(self, {});"}) {
    EXPECT_EQ(compiled_at_once(other), other);
  }
}

TEST(Html, TheWrapperOfTheInstalledPlotlyIsKnown) {
  const auto file = find_plotly_js();
  if (!file) GTEST_SKIP() << "no plotly.min.js here";
  std::ifstream in(*file, std::ios::binary);
  const std::string plotly(std::istreambuf_iterator<char>(in), {});
  EXPECT_EQ(compiled_at_once(plotly).size(), plotly.size() + 2);
}

TEST(Html, PlotlyIsPackedIntoThePageAndCannotEndItsScript) {
  const std::string plotly = "var Plotly = '</SCRIPT><b>';";
  const std::string page = render_html(sample_records(), plotly);
  EXPECT_THAT(page, HasSubstr(R"(<script type="text/plain" id="plotly">)" +
                              packed_for_html(plotly) + "</script>"));
  EXPECT_THAT(page, Not(HasSubstr("</SCRIPT>")));
  EXPECT_THAT(page, Not(HasSubstr("has no plots")));
}

TEST(Html, WithoutPlotlyThePageSaysSo) {
  EXPECT_THAT(render_html(sample_records(), std::nullopt), HasSubstr("This page has no plots"));
}

TEST(Html, LoadsNothing) {
  const std::string page = render_html(sample_records(), std::nullopt);
  for (const char* text : {"src=", "href=", "url(", "@import", "http://", "https://"}) {
    EXPECT_THAT(page, Not(HasSubstr(text)));
  }
}

TEST(Html, OfNoRecordsIsAPageToo) {
  EXPECT_EQ(data_of(render_html({}, std::nullopt))["cells"]["count"], 0);
}

TEST(Html, PlacesThatCannotBeWrittenAreNamed) {
  const TempDirectory folder;
  ::setenv("LONGCA_PLOTLY_JS", (folder / "none.js").c_str(), 1);
  expect_input_error([&] { write_html(sample_records(), folder / "no/page.html"); },
                     "no/page.html: No such file");
  write_html(sample_records(), folder / "page.html");
  EXPECT_THAT(read_file(folder / "page.html"), HasSubstr("</html>"));
  ::unsetenv("LONGCA_PLOTLY_JS");
}

TEST(HtmlText, EscapesMarkup) {
  EXPECT_EQ(html_escaped("<a href='x' title=\"y\">&"),
            "&lt;a href=&#39;x&#39; title=&quot;y&quot;&gt;&amp;");
}

RC_GTEST_PROP(HtmlText, JsonOfAnyTextIsSafeAndReadsBack, ()) {
  const auto pieces = *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
      "</script>", "<!--", "&", "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2", "\"", "\\", "a", "é"));
  std::string text;
  for (const std::string& piece : pieces) text += piece;
  const std::string safe = json_for_script(json{{"text", text}});
  RC_ASSERT(safe.find_first_of("<>&") == std::string::npos);
  RC_ASSERT(json::parse(safe) == json({{"text", printable(text)}}));
}

TEST(HtmlText, ScriptsKeepEverythingButTheirEnd) {
  EXPECT_EQ(script_for_html("a</b>'</script>'</Script"), "a</b>'<\\/script>'<\\/Script");
  EXPECT_EQ(script_for_html(""), "");
}

TEST(HtmlText, TemplatesTakeEachValueOnce) {
  EXPECT_EQ(fill_template("{{a}}-{{b}}-{{a}}", {{"a", "{{b}}"}, {"b", "2"}}), "{{b}}-2-{{b}}");
  EXPECT_THROW(fill_template("{{c}}", {}), InternalError);
  EXPECT_THROW(fill_template("{{c", {}), InternalError);
}

}  // namespace
}  // namespace longca::testing
