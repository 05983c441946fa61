#include "report/data/choices.h"

#include <gtest/gtest.h>

namespace longca::testing {
namespace {

const AxisTexts kShort = {{"heads", "64:8"}};
const AxisTexts kLong = {{"heads", "64:8"}, {"lengths", "pile"}};
const AxisTexts kOther = {{"heads", "64:64"}, {"lengths", "pile"}};

TEST(Choices, ASettingAgreesIfNoAxisOfBothDiffers) {
  EXPECT_TRUE(agrees({}, kLong));
  EXPECT_TRUE(agrees(kShort, kLong));
  EXPECT_TRUE(agrees(kLong, kShort));
  EXPECT_FALSE(agrees(kOther, kShort));
}

TEST(Choices, ASettingThatIsPartOfAnotherIsNotDrawnAlone) {
  EXPECT_EQ(widest_settings({kShort, kLong, kOther}), (std::vector<AxisTexts>{kLong, kOther}));
  EXPECT_EQ(widest_settings({{}}), (std::vector<AxisTexts>{{}}));
  EXPECT_EQ(widest_settings({{}, kShort}), (std::vector<AxisTexts>{kShort}));
}

TEST(Choices, OnlyAxesWithSeveralValuesAreChosen) {
  EXPECT_TRUE(make_choices({{kShort, 3}}).empty());
  const auto axes = make_choices({{kLong, 3}, {kOther, 5}});
  ASSERT_EQ(axes.size(), 1U);
  EXPECT_EQ(axes[0].name, "heads");
  EXPECT_EQ(axes[0].values, (std::vector<std::string>{"64:8", "64:64"}));
  EXPECT_EQ(axes[0].chosen, "64:64");
}

TEST(Choices, TheDefaultsTogetherHaveCells) {
  // Most cells have mode b, but none of them with the heads that most cells have.
  const auto axes = make_choices({{{{"heads", "1"}, {"mode", "a"}}, 5},
                                  {{{"heads", "2"}, {"mode", "b"}}, 4},
                                  {{{"heads", "3"}, {"mode", "b"}}, 4}});
  ASSERT_EQ(axes.size(), 2U);
  EXPECT_EQ(axes[0].chosen, "1");
  EXPECT_EQ(axes[1].chosen, "a");
}

}  // namespace
}  // namespace longca::testing
