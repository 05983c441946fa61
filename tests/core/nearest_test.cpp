#include "core/nearest.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

namespace longca {
namespace {

const std::vector<std::string> kMasks = {"full", "causal", "sliding_window", "document",
                                         "causal_document"};

TEST(NearestName, FindsTheMeantOne) {
  EXPECT_EQ(nearest_name("casual", kMasks), "causal");
  EXPECT_EQ(nearest_name("ful", kMasks), "full");
  EXPECT_EQ(nearest_name("documnet", kMasks), "document");
  EXPECT_EQ(nearest_name("causal-document", kMasks), "causal_document");
  EXPECT_EQ(nearest_name("FULL", kMasks), "full");
}

TEST(NearestName, SaysNothingWhenNothingIsClose) {
  EXPECT_EQ(nearest_name("xyzzyplugh", kMasks), "");
  EXPECT_EQ(nearest_name("", kMasks), "");
  EXPECT_EQ(nearest_name(std::string(100000, 'a'), kMasks), "");
  EXPECT_EQ(nearest_name("causal", {}), "");
}

TEST(Suggestion, IsReadyToAppend) {
  EXPECT_EQ(suggestion("casual", kMasks), " (did you mean 'causal'?)");
  EXPECT_EQ(suggestion("xyzzyplugh", kMasks), "");
}

RC_GTEST_PROP(NearestName, OneSlipInALongNameIsForgiven, ()) {
  const std::string name = *rc::gen::elementOf(kMasks);
  const auto at = *rc::gen::inRange<std::size_t>(0, name.size());
  std::string word = name;
  word.erase(at, 1);
  RC_ASSERT(nearest_name(word, kMasks) == name);
}

}  // namespace
}  // namespace longca
