#include "report/format.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "bench/record/record.h"

namespace longca::testing {
namespace {

TEST(Format, Tokens) {
  EXPECT_EQ(format_tokens(0), "0");
  EXPECT_EQ(format_tokens(1000), "1000");
  EXPECT_EQ(format_tokens(1024), "1K");
  EXPECT_EQ(format_tokens(768 * 1024), "768K");
  EXPECT_EQ(format_tokens(1 << 20), "1M");
  EXPECT_EQ(format_tokens((1 << 20) + 1), "1048577");
}

TEST(Format, Bytes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(300.0 * 1024 * 1024), "300 MiB");
  EXPECT_EQ(format_bytes(5e15), "4547 TiB");
}

TEST(Format, AHangingIndentBreaksAtSpacesOnly) {
  EXPECT_EQ(with_hanging_indent("", 40, 4), "");
  EXPECT_EQ(with_hanging_indent("one two", 7, 2), "one two");
  EXPECT_EQ(with_hanging_indent("one two three", 7, 2), "one two\n  three");
  EXPECT_EQ(with_hanging_indent("  name   what it is", 14, 9), "  name   what\n         it is");
  EXPECT_EQ(with_hanging_indent("a word_that_is_wider b", 8, 1), "a\n word_that_is_wider\n b");
  EXPECT_EQ(with_hanging_indent("größer größer", 13, 0), "größer größer");
}

TEST(Format, RatesBelowOneTeraflopAreInGigaflops) {
  EXPECT_EQ(rate_unit(0.999).name, "GFLOP/s");
  EXPECT_EQ(rate_unit(0.999).per_tflops, 1000);
  EXPECT_EQ(rate_unit(1).name, "TFLOP/s");
}

TEST(Format, CardsThatRepeatAreCounted) {
  EXPECT_EQ(short_machine("Example, 16 cores, H200, H200 (driver 550)"),
            "Example, 16 cores, 2 × H200 (driver 550)");
  EXPECT_EQ(short_machine("Example, 16 cores, H200, H2000, H200"),
            "Example, 16 cores, H200, H2000, H200");
  EXPECT_EQ(short_machine(""), "");
  EXPECT_EQ(short_machine("H200, , , "), "H200, 2 × ");
}

Record record_of(const std::string& commit, int cards, int tokens) {
  Record record;
  record.c.tokens = tokens;
  record.env = {{"cpu", {{"model", "Example"}, {"cores_usable", 2}}},
                {"gpu_driver", "550"},
                {"version", "0.2.0"},
                {"commit", commit},
                {"build_type", "Release"}};
  for (int i = 0; i < cards; ++i) record.env.own()["gpus"].push_back({{"model", "H200"}});
  return record;
}

TEST(Format, WhatOriginsShareIsSaidOnce) {
  std::vector<Record> records{record_of("aaaa", 1, 1), record_of("bbbb", 1, 2),
                              record_of("bbbb", 1, 3)};
  EXPECT_EQ(describe_origins(records),
            "2 origins, all of Example, 2 cores, H200, driver 550, 0.2.0, Release build: "
            "commit aaaa (1 cell), commit bbbb (2 cells)");
  records.push_back(record_of("bbbb", 4, 4));
  records.push_back(record_of("cccc", 1, 5));
  EXPECT_EQ(describe_origins(records),
            "4 origins, all of Example, 2 cores, driver 550, 0.2.0, Release build: "
            "H200: commit aaaa (1 cell), commit bbbb (2 cells), commit cccc (1 cell); "
            "4 × H200: commit bbbb (1 cell)");
  records = {record_of("aaaa", 1, 1), record_of("aaaa", 4, 1)};
  EXPECT_EQ(describe_origins(records),
            "2 origins, all of Example, 2 cores, driver 550, 0.2.0, commit aaaa, Release build: "
            "H200 (1 cell); 4 × H200 (1 cell)");
  records[1] = records[0];
  records[0].env.own()["plugins"] = {{"a.so", "0123"}};
  records[1].env.own()["plugins"] = {{"a.so", "4567"}};
  EXPECT_EQ(describe_origins(records),
            "2 origins, all of Example, 2 cores, H200, driver 550, 0.2.0, commit aaaa, Release "
            "build: a.so 0123 (1 cell), a.so 4567 (1 cell)");
}

TEST(Format, PercentHasNoNegativeZero) {
  EXPECT_EQ(format_percent(-0.3), "0");
  EXPECT_EQ(format_percent(-0.7), "-1");
  EXPECT_EQ(format_percent(12.4), "12");
}

}  // namespace
}  // namespace longca::testing
