#include "report/data/series_colors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace longca::testing {
namespace {

TEST(SeriesColors, AKernelHasItsColourOnEveryPage) {
  SeriesColors page;
  SeriesColors other;
  other.color_of("a_plugin");
  for (const char* kernel : {"slice", "fa3", "cudnn", "naive", "magi"}) {
    EXPECT_EQ(page.color_of(kernel), other.color_of(kernel));
  }
  EXPECT_EQ(page.color_of("slice"), "#2f6fbb");
}

TEST(SeriesColors, NoTwoNamesShareAColour) {
  SeriesColors colors;
  std::set<std::string> seen;
  const char* kernels[] = {"slice",
                           "fa3",
                           "cudnn",
                           "flex",
                           "fa2",
                           "naive",
                           "sdpa",
                           "sdpa_mask",
                           "fa1",
                           "flashmask",
                           "flashmask_native",
                           "ffa",
                           "fa4",
                           "flash",
                           "block_sparse",
                           "vsa",
                           "vsa_triton",
                           "flashinfer",
                           "fa2_sparse",
                           "fa2_sparse_native",
                           "cudnn_bsa"};
  for (const char* kernel : kernels) {
    EXPECT_TRUE(seen.insert(colors.color_of(kernel)).second) << kernel;
  }
  for (int i = 0; i < 40; ++i) {
    const std::string plugin = "plugin_" + std::to_string(i);
    const std::string color = colors.color_of(plugin);
    EXPECT_TRUE(seen.insert(color).second) << plugin << ' ' << color;
    EXPECT_EQ(colors.color_of(plugin), color);
    EXPECT_THAT(color, ::testing::MatchesRegex("#[0-9a-f]{6}"));
  }
}

TEST(SeriesColors, VariantsOfASchemeAreShadesOfItsColour) {
  SeriesColors colors;
  std::set<std::string> shades;
  for (std::size_t shade = 0; shade < 8; ++shade) shades.insert(colors.color_of("magi", shade));
  EXPECT_EQ(shades.size(), 8U);
  EXPECT_TRUE(shades.contains(SeriesColors().color_of("magi")));
}

const std::vector<std::string>& program_names() {
  static const std::vector<std::string> names{
      "slice",      "fa3",           "cudnn",     "flex",
      "fa2",        "naive",         "sdpa",      "sdpa_mask",
      "fa1",        "flashmask",     "ffa",       "flashmask_native",
      "fa4",        "flash",         "vsa",       "block_sparse",
      "vsa_triton", "flashinfer",    "cudnn_bsa", "fa2_sparse_native",
      "ulysses",    "magiattention", "ring_p2p",  "ring_allgather",
      "usp",        "loongtrain",    "magi",      "fa2_sparse"};
  return names;
}

/// WCAG 2 asks 3 of lines and bars.
TEST(SeriesColors, MarksStandOutOnWhite) {
  SeriesColors colors;
  std::vector<std::string> names = program_names();
  for (int i = 0; i < 12; ++i) names.push_back("plugin_" + std::to_string(i));
  for (const std::string& name : names) {
    EXPECT_GE(contrast(colors.color_of(name), "#ffffff"), 3) << name;
  }
}

TEST(SeriesColors, EveryShadeIsLegibleOnDarkPages) {
  SeriesColors colors;
  std::vector<std::string> names = program_names();
  for (int i = 0; i < 40; ++i) names.push_back("plugin_" + std::to_string(i));
  for (const std::string& name : names) {
    std::set<std::string> shades;
    for (std::size_t shade = 0; shade < 8; ++shade) {
      const std::string color = colors.on_dark(name, shade);
      EXPECT_THAT(color, ::testing::MatchesRegex("#[0-9a-f]{6}"));
      EXPECT_GE(contrast(color, kDarkGround), kMinContrast) << name << ' ' << shade << ' ' << color;
      shades.insert(color);
    }
    EXPECT_EQ(shades.size(), 8U) << name;
  }
}

TEST(SeriesColors, NoTwoNamesShareAColourOnDarkPages) {
  SeriesColors colors;
  std::set<std::string> seen;
  for (const std::string& name : program_names()) {
    EXPECT_TRUE(seen.insert(colors.on_dark(name)).second) << name;
  }
  for (int i = 0; i < 40; ++i) {
    const std::string plugin = "plugin_" + std::to_string(i);
    EXPECT_TRUE(seen.insert(colors.on_dark(plugin)).second) << plugin;
  }
}

TEST(SeriesColors, ContrastIsThatOfWcag) {
  EXPECT_NEAR(contrast("#000000", "#ffffff"), 21, 1e-9);
  EXPECT_NEAR(contrast("#ffffff", "#ffffff"), 1, 1e-9);
  EXPECT_NEAR(contrast("#777777", "#ffffff"), 4.478, 1e-3);
  EXPECT_EQ(contrast("#2f6fbb", "#1a1e26"), contrast("#1a1e26", "#2f6fbb"));
}

TEST(SeriesColors, MixesWithWhiteAndBlack) {
  EXPECT_EQ(mixed_color("#102030", 0), "#102030");
  EXPECT_EQ(mixed_color("#102030", 1), "#ffffff");
  EXPECT_EQ(mixed_color("#102030", -0.5), "#081018");
}

}  // namespace
}  // namespace longca::testing
