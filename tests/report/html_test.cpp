#include "report/html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdlib>
#include <limits>

#include "bench/expect_input_error.h"
#include "core/error.h"
#include "core/printable.h"
#include "report/golden.h"
#include "report/html_data.h"
#include "report/html_text.h"
#include "report/sample_records.h"
#include "report/sparse_records.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

using nlohmann::json;
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

TEST(Html, DataGolden) {
  const std::vector<Record> records = sample_records();
  expect_golden(html_data(split_records(records)).dump(1) + "\n", "page_data.json");
}

TEST(Html, OverRanksDataGolden) {
  std::vector<Record> records = over_ranks_records();
  const std::vector<Record> single = one_device_records();
  records.insert(records.end(), single.begin(), single.end());
  expect_golden(html_data(split_records(records)).dump(1) + "\n", "page_data_ranks.json");
}

TEST(Html, BlockSparseCellsKnowTheirLine) {
  const std::vector<Record> records = joined(sparse_records(), selected_records());
  const json data = html_data(split_records(records));
  const json& sparse = data.at("sparse");
  EXPECT_EQ(sparse.at("tables").size(), 9U);
  std::size_t cells = 0;
  for (const json& cell : data.at("cells")) {
    EXPECT_EQ(cell.contains("line"), cell.at("mask") == "block_sparse");
    if (!cell.contains("line")) continue;
    ++cells;
    const json& line = sparse.at("lines").at(cell.at("line").get<std::size_t>());
    EXPECT_EQ(line.at("kernel"), cell.at("kernel"));
    const json& group = sparse.at("groups").at(line.at("group").get<std::size_t>());
    EXPECT_EQ(group.at("tokens"), cell.at("tokens"));
    const json& table = sparse.at("tables").at(group.at("table").get<std::size_t>());
    EXPECT_EQ(table.at("pass"), cell.at("pass"));
    const bool has_dense = cell.at("tokens") == 32768 || cell.at("setting").at("heads") == "64:8";
    EXPECT_EQ(group.at("dense").is_object(), has_dense);
    if (has_dense) {
      EXPECT_EQ(group.at("dense").at("kernel"), "fa3");
    }
  }
  EXPECT_EQ(cells, 2U * 2 * 2 * 2 * 3 * 4 + 3 * 2);
}

TEST(Html, BlockSparseIsNullWhereThereIsNothingToCompare) {
  EXPECT_EQ(html_data(split_records(sample_records())).at("sparse"), json());
}

TEST(Html, RanksAreNullWhereNoCellHasThem) {
  EXPECT_EQ(data_of(render_html(sample_records(), std::nullopt))["ranks"], json());
  EXPECT_NE(data_of(render_html(over_ranks_records(), std::nullopt))["ranks"], json());
}

TEST(Html, MasksOfCellsOverRanksAreDrawnOnceAndShort) {
  const std::string page = render_html(over_ranks_records(), std::nullopt);
  EXPECT_THAT(page, HasSubstr("data-mask=\"causal_document\" data-tokens=\"1024\"><svg"));
  EXPECT_THAT(page, Not(HasSubstr("data-tokens=\"2048\"><svg")));
}

TEST(Html, MarkupInRecordsStaysText) {
  const std::string page = render_html(hostile_records(), std::nullopt);
  EXPECT_THAT(page, Not(HasSubstr("<script>document")));
  EXPECT_EQ(data_of(page)["cells"][0]["reason"], printable(kHostileText));
}

TEST(Html, TheDataAreInTheOrderToShow) {
  const json data = data_of(render_html(sample_records(), std::nullopt));
  EXPECT_EQ(data["masks"],
            json({"full", "sliding_window_causal", "causal_document", "block_sparse"}));
  EXPECT_EQ(data["tokens"], json({1024, 4096}));
  EXPECT_EQ(data["passes"], json({"forward", "backward"}));
  EXPECT_EQ(data["cells"].size(), sample_records().size());
}

TEST(Html, HasAPictureOfEachMask) {
  const std::string page = render_html(all_mask_records(), std::nullopt);
  for (const MaskTraits& mask : mask_table()) {
    EXPECT_THAT(page, HasSubstr("data-mask=\"" + mask.name + "\" data-tokens=\"2048\"><svg"));
  }
}

TEST(Html, AMaskThatCannotBeDrawnStillHasItsCells) {
  std::vector<Record> records = sample_records();
  for (Record& record : records) record.c.mask = "a_mask_of_tomorrow";
  records.resize(1);
  const std::string page = render_html(records, std::nullopt);
  EXPECT_THAT(page, Not(HasSubstr("<svg")));
  EXPECT_THAT(page, HasSubstr("1 mask is not drawn"));
  EXPECT_EQ(data_of(page)["cells"].size(), 1U);
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

TEST(Html, PlotlyIsInlinedAndCannotEndItsScript) {
  const std::string page = render_html(sample_records(), "var Plotly = '</SCRIPT><b>';");
  EXPECT_THAT(page, HasSubstr(R"(<script>var Plotly = '<\/SCRIPT><b>';</script>)"));
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
  EXPECT_EQ(data_of(render_html({}, std::nullopt))["cells"], json::array());
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
