#include "core/printable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.h"

namespace longca::testing {
namespace {

TEST(Printable, KeepsWhatShows) {
  for (const std::string text : {"", "plain", "C:\\path", "é ü 中 😀 ≤ – ·", "~ `'\"<&>"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, WritesOutWhatActs) {
  EXPECT_EQ(printable("a\033[2J\n\r\t\x7f"), "a\\x1b[2J\\n\\r\\t\\x7f");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\u0085\u009b31m"), "\\u0085\\u009b31m");                 // C1: NEL, CSI
  EXPECT_EQ(printable("\u202emoc\u2066x\u2069"), "\\u202emoc\\u2066x\\u2069");  // bidirectional
  EXPECT_EQ(printable("a\u200b\u2028\u2029\ufeff"), "a\\u200b\\u2028\\u2029\\ufeff");
  EXPECT_EQ(printable("\U000e0041"), "\\U000e0041");
}

TEST(Printable, WritesOutBytesThatAreNoText) {
  EXPECT_EQ(printable("\xff\x9b"), "\\xff\\x9b");           // a C1 byte of its own
  EXPECT_EQ(printable("\xc3"), "\\xc3");                    // cut
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b");           // overlong ESC
  EXPECT_EQ(printable("\xe0\x82\x9b"), "\\xe0\\x82\\x9b");  // overlong CSI
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
}

RC_GTEST_PROP(Printable, LeavesNothingToWriteOut, (const std::string& text)) {
  const std::string shown = printable(text);
  RC_ASSERT(printable(shown) == shown);
  for (const char c : shown) RC_ASSERT(static_cast<unsigned char>(c) >= 0x20);
}

TEST(PrintableJson, SaysTheSameWithoutWhatActs) {
  using nlohmann::json;
  const json value{{"a\u202e", {"\033[2J\n", "\u009b31m\x7f", "é 中 😀 \\ \"", "\U000e0041"}},
                   {"b", {{"c", 1.5}}}};
  const std::string shown = printable_json(value.dump(2));
  EXPECT_EQ(json::parse(shown), value);
  EXPECT_THAT(shown, ::testing::HasSubstr("é 中 😀"));
  EXPECT_THAT(shown, ::testing::HasSubstr("\\udb40\\udc41"));
  std::string lines = shown;
  std::erase(lines, '\n');
  EXPECT_EQ(printable(lines), lines);
}

TEST(Name, HasNoPathAndNoMarkup) {
  for (const char* name : {"flash", "fa2.8-rc1", "A_0", "..."}) EXPECT_TRUE(is_name(name)) << name;
  for (const char* name :
       {"", ".", "..", "../PWN", "a b", "a\n", "é", "a/b", "<b>", "a=b", "a,b"}) {
    EXPECT_FALSE(is_name(name)) << name;
  }
  EXPECT_TRUE(is_name(std::string(kMaxNameBytes, 'x')));
  EXPECT_FALSE(is_name(std::string(kMaxNameBytes + 1, 'x')));
}

TEST(Name, IsRefusedBySentence) {
  try {
    check_name("kernel", "../PWN");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("kernel '../PWN' is no name"));
  }
}

}  // namespace
}  // namespace longca::testing
