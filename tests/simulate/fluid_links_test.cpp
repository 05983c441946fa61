#include "simulate/fluid_links.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

namespace longca::simulate {
namespace {

/// Starts all flows at time 0 and returns when the last settle says that each ends.
std::map<int, double> ends_at_start(FluidLinks& links, const std::vector<int>& flows) {
  std::map<int, double> ends;
  for (const int flow : flows) links.start(flow);
  links.settle(0, [&](int flow, double end) { ends[flow] = end; });
  return ends;
}

TEST(FluidLinks, OneFlowHasTheRateOfItsSlowestLink) {
  FluidLinks links;
  const std::vector<int> path = {links.add_link(100), links.add_link(40)};
  const int flow = links.add_flow(path, 400);
  EXPECT_DOUBLE_EQ(ends_at_start(links, {flow})[flow], 10);
  EXPECT_DOUBLE_EQ(links.rate(flow), 40);
}

TEST(FluidLinks, EqualFlowsShareALink) {
  FluidLinks links;
  const std::vector<int> path = {links.add_link(100)};
  std::vector<int> flows;
  for (int i = 0; i < 5; ++i) flows.push_back(links.add_flow(path, 100));
  for (const auto& [flow, end] : ends_at_start(links, flows)) EXPECT_DOUBLE_EQ(end, 5) << flow;
}

TEST(FluidLinks, WhatABottleneckLeavesGoesToOthers) {
  FluidLinks links;
  const int wide = links.add_link(100);
  const int narrow = links.add_link(10);
  const int slow = links.add_flow(std::vector{wide, narrow}, 100);
  const int fast = links.add_flow(std::vector{wide}, 90);
  const auto ends = ends_at_start(links, {slow, fast});
  EXPECT_DOUBLE_EQ(links.rate(slow), 10);
  EXPECT_DOUBLE_EQ(links.rate(fast), 90);
  EXPECT_DOUBLE_EQ(ends.at(fast), 1);
}

TEST(FluidLinks, AFlowIsFasterOnceAnotherHasEnded) {
  FluidLinks links;
  const std::vector<int> path = {links.add_link(10)};
  const int first = links.add_flow(path, 10);
  const int second = links.add_flow(path, 30);
  EXPECT_DOUBLE_EQ(ends_at_start(links, {first, second}).at(first), 2);
  links.finish(first);
  double end = 0;
  links.settle(2, [&](int flow, double at) {
    EXPECT_EQ(flow, second);
    end = at;
  });
  EXPECT_DOUBLE_EQ(end, 4);  // 10 bytes in 2 s, 20 more at the whole rate
}

/// The definition of max-min fairness: every flow has a link that is full, on which none is faster.
RC_GTEST_PROP(FluidLinks, IsMaxMinFair, ()) {
  FluidLinks links;
  const int count = *rc::gen::inRange(1, 6);
  std::vector<double> capacities;
  for (int i = 0; i < count; ++i) {
    capacities.push_back(*rc::gen::inRange(1, 100));
    links.add_link(capacities.back());
  }
  std::vector<std::vector<int>> paths;
  std::vector<int> flows;
  const int flow_count = *rc::gen::inRange(1, 8);
  for (int i = 0; i < flow_count; ++i) {
    std::vector<int> path;
    for (int link = 0; link < count; ++link) {
      if (*rc::gen::inRange(0, 2) == 1) path.push_back(link);
    }
    if (path.empty()) path.push_back(*rc::gen::inRange(0, count));
    paths.push_back(path);
    flows.push_back(links.add_flow(path, 1));
  }
  ends_at_start(links, flows);
  const auto over = [&](int link, auto combine) {
    double value = 0;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      if (std::ranges::find(paths[i], link) != paths[i].end()) {
        value = combine(value, links.rate(flows[i]));
      }
    }
    return value;
  };
  for (std::size_t i = 0; i < paths.size(); ++i) {
    RC_ASSERT(std::ranges::any_of(paths[i], [&](int link) {
      const double sum = over(link, [](double a, double b) { return a + b; });
      const double fastest = over(link, [](double a, double b) { return std::max(a, b); });
      RC_ASSERT(sum <= capacities[static_cast<std::size_t>(link)] * (1 + 1e-9));
      return sum >= capacities[static_cast<std::size_t>(link)] * (1 - 1e-9) &&
             links.rate(flows[i]) >= fastest * (1 - 1e-9);
    }));
  }
}

}  // namespace
}  // namespace longca::simulate
