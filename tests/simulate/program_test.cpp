#include "simulate/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "simulate/works.h"

namespace longca::simulate {
namespace {

using testing::add_exchange;

TEST(Program, MakesOneMessageOfThoseBetweenTheSameExchanges) {
  std::vector<RankWork> works(2);
  add_exchange(works[0], {{1, 10}, {1, 20}, {1, 30}}, {});
  works[0].exchanges[0].sends[1].joined = true;
  add_exchange(works[1], {}, {{0, 10}, {0, 20}});
  add_exchange(works[1], {}, {{0, 30}});
  const Program program = link(works);
  ASSERT_EQ(program.messages.size(), 2U);
  EXPECT_EQ(program.messages[0].bytes, 30);
  EXPECT_EQ(program.messages[0].copies, 1);
  EXPECT_EQ(program.messages[1].bytes, 30);
  EXPECT_EQ(program.exchanges[0].receivers, (std::vector{1, 2}));
  EXPECT_EQ(program.exchanges[1].receives, 1);
  EXPECT_EQ(program.exchanges[2].senders, std::vector{0});
}

TEST(Program, NamesTheRanksWhoseMessagesDoNotFit) {
  std::vector<RankWork> works(2);
  add_exchange(works[0], {{1, 10}}, {});
  add_exchange(works[1], {}, {{0, 11}});
  EXPECT_THROW(link(works), InternalError);
  works[1].exchanges[0].receives.clear();
  EXPECT_THROW(link(works), InternalError);
  works[0].exchanges[0].sends.clear();
  works[1].exchanges[0].receives = {{0, 10}};
  EXPECT_THROW(link(works), InternalError);
}

}  // namespace
}  // namespace longca::simulate
