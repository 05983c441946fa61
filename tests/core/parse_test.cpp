#include "core/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "core/error.h"

namespace longca {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string error_of(const auto& call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ParseCount, TakesBinarySuffixes) {
  EXPECT_EQ(parse_count("tokens", "4096"), 4096);
  EXPECT_EQ(parse_count("tokens", "4K"), 4096);
  EXPECT_EQ(parse_count("tokens", "768k"), 786432);
  EXPECT_EQ(parse_count("tokens", "1M"), 1048576);
  EXPECT_EQ(parse_count("tokens", "-3"), -3);
}

TEST(ParseCount, NamesWhatIsWrong) {
  for (const char* text : {"", "K", "1.5", "1e3", "0x10", "12 ", " 12", "4KB", "+4"}) {
    EXPECT_THAT(error_of([&] { parse_count("tokens", text); }), HasSubstr("is not a whole number"))
        << text;
  }
  EXPECT_THAT(error_of([] { parse_count("tokens", "99999999999999999999"); }),
              HasSubstr("too large: the maximum of any number is 9223372036854775807"));
  EXPECT_THAT(error_of([] { parse_count("seed", "9223372036854775808"); }),
              HasSubstr("the maximum of any number is 9223372036854775807"));
  EXPECT_THAT(error_of([] { parse_count("seed", "-9223372036854775809"); }),
              HasSubstr("-9223372036854775809 is too small"));
  EXPECT_THAT(error_of([] { parse_count("tokens", "9100000000000000K"); }), HasSubstr("too large"));
}

RC_GTEST_PROP(ParseCount, ReadsBackEveryNumber, (std::int64_t value)) {
  RC_ASSERT(parse_count("n", std::to_string(value)) == value);
}

RC_GTEST_PROP(ParseCounts, AnyTextGivesValuesOrOneSentence, (const std::string& text)) {
  try {
    RC_ASSERT(!parse_counts("n", text).empty());
  } catch (const InputError& error) {
    RC_ASSERT(!std::string(error.what()).empty());
  }
}

TEST(ParseCounts, ListsAndRanges) {
  EXPECT_THAT(parse_counts("tokens", "1K,3000"), ElementsAre(1024, 3000));
  EXPECT_THAT(parse_counts("tokens", "1K:8K:x2"), ElementsAre(1024, 2048, 4096, 8192));
  EXPECT_THAT(parse_counts("tokens", "1:10:x3,7"), ElementsAre(1, 3, 9, 7));
  EXPECT_THAT(parse_counts("tokens", "5:5:x2"), ElementsAre(5));
}

TEST(ParseCounts, NamesThePartOfARangeThatIsNoNumber) {
  EXPECT_EQ(error_of([] { parse_counts("tokens", "1K:4K:x1.5"); }),
            "the factor of tokens '1K:4K:x1.5': '1.5' is not a whole number (such as 4096, 4K or "
            "1M)");
  EXPECT_EQ(error_of([] { parse_counts("tokens", "7,1K::x2"); }),
            "the last value of tokens '1K::x2': '' is not a whole number (such as 4096, 4K or 1M)");
  EXPECT_THAT(error_of([] { parse_counts("tokens", "a:4K:x2"); }),
              HasSubstr("the first value of tokens 'a:4K:x2': 'a' is not"));
}

TEST(ParseCounts, RefusesRangesWithoutEnd) {
  for (const char* text :
       {"1:2", "1:2:3", "1:2:x", "1:2:x1", "1:2:x-2", "2:1:x2", "0:8:x2", "1::x2", ","}) {
    EXPECT_NE(error_of([&] { parse_counts("tokens", text); }), "no error") << text;
  }
  // The last doubling would pass 2^63.
  EXPECT_EQ(parse_counts("tokens", "1:9223372036854775807:x2").size(), 63U);
}

TEST(ParseNumber, FiniteDecimalsOnly) {
  EXPECT_DOUBLE_EQ(parse_number("density", "0.5"), 0.5);
  EXPECT_DOUBLE_EQ(parse_number("density", "1e-1"), 0.1);
  for (const char* text : {"", "nan", "inf", "0.5x", "half", "1e999"}) {
    EXPECT_THAT(error_of([&] { parse_number("density", text); }), HasSubstr("density")) << text;
  }
}

}  // namespace
}  // namespace longca
