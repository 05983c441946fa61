// No view of a record lets a text of the record act: on a terminal, in a line, on the direction of
// text.

#include <gtest/gtest.h>

#include <sstream>

#include "core/printable.h"
#include "report/csv.h"
#include "report/html.h"
#include "report/markdown.h"
#include "report/sample_records.h"
#include "report/table.h"

namespace longca::testing {
namespace {

/// Expects every line of a view to be what `printable` leaves as it is.
void expect_printable(const std::string& view, std::string_view line_end = "\n") {
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = view.find(line_end, begin)) != std::string::npos;
       begin = end + line_end.size()) {
    const std::string line = view.substr(begin, end - begin);
    ASSERT_EQ(line, printable(line));
  }
  EXPECT_EQ(begin, view.size()) << "the last line has no end";
}

/// The sample's records with a text that acts wherever a text can be, also where kHostileText is
/// too long to be.
std::vector<Record> acting_records() {
  std::vector<Record> records = hostile_records();
  for (Record& record : records) {
    record.metrics["evil\033[2J\n"] = 1;
    record.notes["\u202eevil\n"] = "\u009b2J";
    record.stop = "converged";
    record.env.own()["cpu"]["\033"] = {"\u0085\n", {"\u2066", "\r"}};
  }
  return records;
}

TEST(HostileTexts, DoNotActInTables) {
  for (const int width : {60, 100, 240}) {
    std::ostringstream out;
    print_table(out, acting_records(), {.width = width});
    expect_printable(out.str());
  }
}

TEST(HostileTexts, DoNotActInCsv) {
  std::ostringstream out;
  write_csv(out, acting_records());
  expect_printable(out.str(), "\r\n");
}

TEST(HostileTexts, DoNotActInMarkdown) {
  std::ostringstream out;
  write_markdown(out, acting_records());
  expect_printable(out.str());
}

TEST(HostileTexts, DoNotActOnAPage) {
  std::string page = render_html(acting_records(), std::nullopt);
  expect_printable(page + "\n");
  const std::string mark = R"(id="data">)";
  const std::size_t begin = page.find(mark) + mark.size();
  const std::string data = page.substr(begin, page.find("</script>", begin) - begin);
  for (std::size_t at = data.find('\\'); at != std::string::npos; at = data.find('\\', at + 2)) {
    const std::string escape = data.substr(at, 6);
    const bool shows = escape[1] == '\\' || escape[1] == '"' || escape == "\\u003c" ||
                       escape == "\\u003e" || escape == "\\u0026";
    ASSERT_TRUE(shows) << "the scripts would show what " << escape << " does";
  }
}

}  // namespace
}  // namespace longca::testing
