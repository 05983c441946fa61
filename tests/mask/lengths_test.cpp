#include "mask/lengths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

#include "mask/error_of.h"

namespace longca {
namespace {

using ::testing::ElementsAre;
using testing::error_of;

TEST(Lengths, EqualThePublishedExamples) {
  PythonRandom first(42);
  EXPECT_THAT(sample_lengths("prolong64k", 8192, first),
              ElementsAre(545, 719, 166, 581, 482, 27, 161, 474, 177, 864, 778, 661, 205, 2352));
  PythonRandom second(42);
  EXPECT_THAT(sample_lengths("pile", 1024, second), ElementsAre(353, 559, 102, 10));
}

struct Known {
  const char* distribution;
  std::int64_t tokens;
  std::uint64_t seed;
  std::size_t count;
  std::int64_t first;
  std::int64_t last;
  std::int64_t checksum;  ///< sum of (i + 1) · length i
};

// Printed by CPython 3.11: random.choices over the bins, random.randint inside the bin.
const std::vector<Known> kKnown = {
    {"pile", 1000, 0U, 1, 1000, 1000, 1000},
    {"pile", 65536, 1U, 103, 68, 863, 3430058},
    {"pile", 786432, 42U, 267, 353, 609344, 185528168},
    {"pile", 786432, 4294967301U, 318, 82, 551853, 214019007},
    {"prolong64k", 1000, 0U, 1, 1000, 1000, 1000},
    {"prolong64k", 65536, 1U, 105, 100, 586, 3432324},
    {"prolong64k", 786432, 42U, 708, 545, 3957, 296437548},
    {"prolong64k", 786432, 4294967301U, 793, 146, 163, 286662025},
    {"prolong512k", 1000, 0U, 2, 949, 51, 1051},
    {"prolong512k", 65536, 1U, 122, 100, 594, 3906997},
    {"prolong512k", 786432, 42U, 374, 481, 41958, 131706336},
    {"prolong512k", 786432, 4294967301U, 418, 114, 1749, 228471349},
    {"chatqa_short", 1000, 0U, 1, 1000, 1000, 1000},
    {"chatqa_short", 65536, 1U, 33, 288, 1034, 1060838},
    {"chatqa_short", 786432, 42U, 366, 1561, 22180, 141065856},
    {"chatqa_short", 786432, 4294967301U, 334, 400, 4027, 144925689},
    {"chatqa_long", 1000, 0U, 1, 1000, 1000, 1000},
    {"chatqa_long", 65536, 1U, 3, 2306, 30612, 159378},
    {"chatqa_long", 786432, 42U, 12, 68814, 101451, 5590845},
    {"chatqa_long", 786432, 4294967301U, 7, 3205, 200337, 3612038},
    {"pile+long", 1000, 0U, 2, 400, 600, 1600},
    {"pile+long", 65536, 1U, 46, 2517, 142, 1358521},
    {"pile+long", 786432, 42U, 293, 504, 297, 113240113},
    {"pile+long", 786432, 4294967301U, 342, 194, 28877, 169038286},
    {"prolong64k+long", 1000, 0U, 2, 400, 600, 1600},
    {"prolong64k+long", 65536, 1U, 45, 191, 174, 1801785},
    {"prolong64k+long", 786432, 42U, 395, 255, 149, 158486651},
    {"prolong64k+long", 786432, 4294967301U, 320, 869, 157, 114261619},
    {"prolong512k+long", 1000, 0U, 2, 400, 600, 1600},
    {"prolong512k+long", 65536, 1U, 51, 267, 1729, 1305146},
    {"prolong512k+long", 786432, 42U, 108, 95, 960, 46400856},
    {"prolong512k+long", 786432, 4294967301U, 338, 158, 10247, 154068582},
    {"chatqa_short+long", 1000, 0U, 2, 400, 600, 1600},
    {"chatqa_short+long", 65536, 1U, 15, 8636, 769, 320222},
    {"chatqa_short+long", 786432, 42U, 164, 16842, 624, 62428758},
    {"chatqa_short+long", 786432, 4294967301U, 180, 658, 1197, 70161621},
    {"chatqa_long+long", 1000, 0U, 2, 400, 600, 1600},
    {"chatqa_long+long", 65536, 1U, 4, 23908, 16402, 142274},
    {"chatqa_long+long", 786432, 42U, 32, 13286, 11262, 13374173},
    {"chatqa_long+long", 786432, 4294967301U, 27, 24662, 23119, 9698096},
};

TEST(Lengths, EqualCPythons) {
  for (const Known& known : kKnown) {
    PythonRandom random(known.seed);
    const auto lengths = sample_lengths(known.distribution, known.tokens, random);
    std::int64_t checksum = 0;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      checksum += static_cast<std::int64_t>(i + 1) * lengths[i];
    }
    SCOPED_TRACE(fmt::format("{} {} {}", known.distribution, known.tokens, known.seed));
    EXPECT_EQ(lengths.size(), known.count);
    EXPECT_EQ(lengths.front(), known.first);
    EXPECT_EQ(lengths.back(), known.last);
    EXPECT_EQ(checksum, known.checksum);
  }
}

TEST(Lengths, OfNoTokens) {
  for (const std::string& name : length_distribution_names()) {
    PythonRandom random(1);
    EXPECT_TRUE(sample_lengths(name, 0, random).empty()) << name;
  }
}

RC_GTEST_PROP(Lengths, FillTheTokensWithAtLeastOneEach, (std::uint64_t seed)) {
  const auto names = length_distribution_names();
  const std::string name =
      *rc::gen::elementOf(std::vector<std::string>(names.begin(), names.end()));
  const auto tokens = *rc::gen::inRange<std::int64_t>(0, 100000);
  PythonRandom random(seed);
  const auto lengths = sample_lengths(name, tokens, random);
  RC_ASSERT(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}) == tokens);
  RC_ASSERT(std::all_of(lengths.begin(), lengths.end(), [](auto length) { return length >= 1; }));
}

TEST(Lengths, NamesAndDescriptions) {
  EXPECT_THAT(
      length_distribution_names(),
      ElementsAre("pile", "prolong64k", "prolong512k", "chatqa_short", "chatqa_long", "pile+long",
                  "prolong64k+long", "prolong512k+long", "chatqa_short+long", "chatqa_long+long"));
  EXPECT_EQ(describe_length_distribution("prolong64k"),
            "LongCA-bench's histogram prolong64k: mean 1017, median 383 tokens");
  EXPECT_EQ(
      describe_length_distribution("pile+long"),
      "LongCA-bench's histogram pile for 40 % of the tokens, the rest in documents of 8192 to "
      "30720");
}

TEST(Lengths, SuggestTheNearestName) {
  PythonRandom random(1);
  EXPECT_EQ(error_of([&] { sample_lengths("prolong64", 8, random); }),
            "unknown length distribution 'prolong64' (did you mean 'prolong64k'?)");
  EXPECT_EQ(error_of([&] { describe_length_distribution("Beowulf"); }),
            "unknown length distribution 'Beowulf'");
  EXPECT_EQ(error_of([&] { sample_lengths("pile", -1, random); }), "tokens = -1: at least 0");
}

}  // namespace
}  // namespace longca
