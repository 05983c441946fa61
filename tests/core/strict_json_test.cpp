#include "core/strict_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "core/error.h"

namespace longca {
namespace {

constexpr int kMaxDepth = 4;

std::string error_of(const std::string& text) {
  try {
    parse_strict_json(text, kMaxDepth);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(StrictJson, ReadsWhatTheLibraryReads) {
  for (const char* text :
       {"null", "true", "-3", "18446744073709551615", "1.5e-3", R"("a\u00e9\n")", "[]", "{}",
        R"({"a":[1,2,{"b":null}],"c":{"d":"e"},"":[[]]})", " [ 1 ,\n 2 ] "}) {
    EXPECT_EQ(parse_strict_json(text, kMaxDepth), nlohmann::json::parse(text)) << text;
  }
  EXPECT_TRUE(parse_strict_json("7", kMaxDepth).is_number_unsigned());
  EXPECT_TRUE(parse_strict_json("7.0", kMaxDepth).is_number_float());
}

TEST(StrictJson, RefusesAKeyThatIsThereTwice) {
  EXPECT_EQ(error_of(R"({"a":1,"b":2,"a":3})"), "the key \"a\" is there twice");
  EXPECT_EQ(error_of(R"([{"a\"":{}, "a\"":[]}])"), "the key \"a\\\"\" is there twice");
  EXPECT_EQ(error_of(R"({"a":{"a":1},"b":{"a":1}})"), "no error");
}

TEST(StrictJson, RefusesValuesThatAreNestedTooDeep) {
  EXPECT_EQ(error_of("[[[[1]]]]"), "no error");
  EXPECT_EQ(error_of("[[[[[]]]]]"), "no error") << "an empty one ends there";
  EXPECT_EQ(error_of("[[[[[1]]]]]"), "values are nested deeper than 4");
  EXPECT_EQ(error_of(R"({"a":{"a":{"a":{"a":{"a":1}}}}})"), "values are nested deeper than 4");
  EXPECT_EQ(error_of(std::string(1 << 20, '[')), "values are nested deeper than 4");
}

TEST(StrictJson, RefusesNumbersOutOfRange) {
  EXPECT_EQ(error_of("[1, 1e999]"),
            "the number at column 5 is too large: the maximum is 1.7977e+308");
  EXPECT_EQ(error_of("[\n  -1e999\n]"),
            "the number at line 2, column 3 is too large: the maximum is 1.7977e+308");
  EXPECT_EQ(error_of("1e-999"), "no error");
}

TEST(StrictJson, NamesThePlaceOfWhatIsNoJson) {
  EXPECT_EQ(error_of(""), "no valid JSON at column 1");
  EXPECT_EQ(error_of("[1,]"), "no valid JSON at column 4");
  EXPECT_EQ(error_of("{\n  \"a\": 1,\n  \"b\" 2\n}"), "no valid JSON at line 3, column 7");
  EXPECT_EQ(error_of("[1]\n\nx"), "no valid JSON at line 3, column 1");
  for (const char* text : {"NaN", "[01]", "'a'", "{a:1}", "[1] 2", "\"\xff\"", "// no\n1"}) {
    EXPECT_EQ(error_of(text).find("no valid JSON at "), 0U) << text;
  }
}

TEST(CutJson, IsTheBeginningOfAnObjectOrArray) {
  const std::string whole = R"({"a":[1,2.5,{"b":"cé"}],"d":null})";
  for (std::size_t size = 1; size < whole.size(); ++size) {
    EXPECT_TRUE(is_cut_json(whole.substr(0, size))) << size;
  }
  for (const char* text : {"", "1", "\"a", "[1]", "[1]]", "{a", "[1,]"}) {
    EXPECT_FALSE(is_cut_json(text)) << text;
  }
  EXPECT_FALSE(is_cut_json(whole));
}

}  // namespace
}  // namespace longca
