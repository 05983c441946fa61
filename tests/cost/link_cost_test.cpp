#include "cost/link_cost.h"

#include <gtest/gtest.h>

namespace longca::cost {
namespace {

TEST(LinkCost, TransfersTakeBytesAndMessages) {
  EXPECT_DOUBLE_EQ(transfer_seconds(default_platform(), 378e6, 2), 1e-3 + 8e-6 + 2 * 9e-6);
}

TEST(LinkCost, KeysArriveAsElementsAndLeaveAsSums) {
  const Platform& h200 = default_platform();
  const HeadShape shape = {64, 4, 64, 2};
  const ExchangeSeconds exchange = exchange_seconds(h200, shape, 1000, 3, 500, 1);
  EXPECT_DOUBLE_EQ(exchange.fetch, 20e-6 + transfer_seconds(h200, 1000 * 2 * 4 * 64 * 2, 3));
  EXPECT_DOUBLE_EQ(exchange.reduce, transfer_seconds(h200, 500 * 2 * 4 * 64 * 4, 1));
}

TEST(LinkCost, CoveredExchangesCostMoreAcrossNodes) {
  EXPECT_DOUBLE_EQ(covered_seconds(default_platform(), 8, 1e-3), 0.05e-3);
  EXPECT_DOUBLE_EQ(covered_seconds(default_platform(), 9, 1e-3), 1e-3);
}

}  // namespace
}  // namespace longca::cost
