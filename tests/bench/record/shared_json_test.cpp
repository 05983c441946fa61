#include "bench/record/shared_json.h"

#include <gtest/gtest.h>

namespace longca::testing {
namespace {

TEST(SharedJson, CopiesAreOneValueUntilOneIsChanged) {
  SharedJson first = {{"commit", "aaa"}};
  const SharedJson copy = first;
  EXPECT_EQ(&*copy, &*first);
  first.own()["commit"] = "bbb";
  EXPECT_EQ(copy->at("commit"), "aaa");
  EXPECT_EQ(first->at("commit"), "bbb");
  const nlohmann::json* own = &*first;
  first.own()["commit"] = "ccc";
  EXPECT_EQ(&*first, own) << "nothing shares it: no copy is made";
}

TEST(SharedJson, WithoutAValueItIsNullAndCanBeGivenOne) {
  SharedJson json;
  EXPECT_TRUE(json->is_null());
  json.own()["key"] = 1;
  EXPECT_EQ(json->at("key"), 1);
  EXPECT_TRUE(SharedJson()->is_null());
}

}  // namespace
}  // namespace longca::testing
