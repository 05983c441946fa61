#include "simulate/cluster.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "simulate/clocks.h"
#include "simulate/engine.h"
#include "simulate/lower.h"
#include "simulate/problems.h"

namespace longca::simulate {
namespace {

using ::testing::HasSubstr;
using testing::problem_over;

const std::string kPage = R"(
name = "two"
description = "Two nodes"
platform = "h200"
[links]
measured = "a datasheet"
bytes_per_second = 200e9
[fabric]
measured = "assumed"
nodes = 2
nics = 4
nic_bytes_per_second = 25e9
seconds_per_exchange = 20e-6
seconds_per_message = 5e-6
oversubscription = 1
kernel_slowdown = 0.05
)";

std::string sentence_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::string cluster_refusal(const std::string& from, const std::string& to) {
  std::string page = kPage;
  page.replace(page.find(from), from.size(), to);
  return sentence_of([&] { parse_cluster(page, "p.toml"); });
}

std::string set_refusal(const std::string& text) {
  Cluster cluster = parse_cluster(kPage, "p.toml");
  return sentence_of([&] { set_figure(cluster, text); });
}

TEST(Cluster, IsItsPlatformWithOtherFigures) {
  const Cluster cluster = parse_cluster(kPage, "p.toml");
  EXPECT_EQ(cluster.name, "two");
  EXPECT_EQ(cluster.gpus(), 16);
  EXPECT_EQ(cluster.fabric->nics, 4);
  cost::Platform expected = cost::load_platform("h200");
  expected.links.measured = "a datasheet";
  expected.links.bytes_per_second = 200e9;
  EXPECT_EQ(cluster.platform, expected);
}

TEST(Cluster, APlatformAloneIsOneNode) {
  const Cluster cluster = load_cluster("h200");
  EXPECT_EQ(cluster.gpus(), 8);
  EXPECT_FALSE(cluster.fabric);
  EXPECT_EQ(cluster.platform, cost::default_platform());
}

TEST(Cluster, AWholePlatformsPageIsOneNodeOfIt) {
  cost::Platform mine = cost::default_platform();
  mine.name = "mine";
  mine.card = "NVIDIA H200";
  mine.memory.bytes_per_second = 3e12;
  const Cluster cluster = parse_cluster(cost::to_toml(mine), "mine.toml");
  EXPECT_EQ(cluster.platform, mine);
  EXPECT_EQ(cluster.name, "mine");
  EXPECT_EQ(cluster.card, "NVIDIA H200");
  EXPECT_FALSE(cluster.fabric);
  EXPECT_EQ(sentence_of([&] {
              mine.memory.bytes_per_second = 0;
              parse_cluster(cost::to_toml(mine), "mine.toml");
            }).find("mine.toml:"),
            0U);
}

/// Its mistakes are those of a platform's page, not of a cluster's.
TEST(Cluster, APlatformsPageWithAMistakeIsOneStill) {
  std::string page = cost::to_toml(cost::default_platform());
  const auto sms = page.find("sms =");
  ASSERT_NE(sms, page.npos);
  page.replace(sms, 5, "smss =");
  EXPECT_NE(sentence_of([&] { parse_cluster(page, "mine.toml"); }).find("'device.sms'"), page.npos);
}

TEST(Cluster, APageWithoutAPlatformIsRefused) {
  EXPECT_EQ(sentence_of([] { parse_cluster("name = \"mine\"\n", "mine.toml"); }),
            "mine.toml: 'platform' is missing: a text");
}

TEST(Cluster, ThoseOfTheProgramAreFoundByName) {
  EXPECT_EQ(load_cluster("h200x8").gpus(), 8);
  EXPECT_EQ(load_cluster("h100x8_ib400").gpus(), 1024);
  EXPECT_DOUBLE_EQ(load_cluster("h100x8_ib400").fabric->nic_bytes_per_second, 50e9);
  EXPECT_DOUBLE_EQ(load_cluster("h800x8_ib200").fabric->nic_bytes_per_second, 25e9);
  EXPECT_EQ(load_cluster(LONGCA_CLUSTERS "/h800x8_ib200.toml").platform,
            load_cluster("h800x8_ib200").platform);
  EXPECT_THAT(sentence_of([] { load_cluster("h100x8"); }), HasSubstr("unknown platform 'h100x8'"));
  EXPECT_EQ(load_cluster("h800x8_ib200").card, "H800");
  EXPECT_EQ(load_cluster("h100x8_published").card, "H100 as published") << "no card of records";
  EXPECT_EQ(load_cluster("h200x8_ib400").card, "NVIDIA H200");
  EXPECT_LT(load_cluster("h200x8").error.p90, load_cluster("h200x8_ib400").error.p90);
  EXPECT_THAT(sentence_of([] { load_cluster("h200x9"); }), HasSubstr("did you mean 'h200x8'?"));
  EXPECT_THAT(sentence_of([] { load_cluster("/nowhere.toml"); }), HasSubstr("cannot read"));
}

TEST(Cluster, RefusesAnUnknownKeyWithTheNearest) {
  EXPECT_EQ(cluster_refusal("nics =", "nicks ="),
            "p.toml: unknown key 'fabric.nicks' (did you mean 'fabric.nics'?)");
}

TEST(Cluster, RefusesAMissingLink) {
  EXPECT_EQ(cluster_refusal("nic_bytes_per_second = 25e9\n", ""),
            "p.toml: 'fabric.nic_bytes_per_second' is missing: a number above 0");
  EXPECT_EQ(cluster_refusal("measured = \"assumed\"\n", ""),
            "p.toml: 'fabric.measured' is missing: where these figures come from");
}

TEST(Cluster, RefusesLinksWithoutARate) {
  EXPECT_EQ(cluster_refusal("= 25e9", "= 0"),
            "p.toml: 'fabric.nic_bytes_per_second' is 0, not a finite number above 0");
  EXPECT_EQ(cluster_refusal("= 200e9", "= -1"),
            "p.toml: 'links.bytes_per_second' is -1, not a finite number above 0");
  EXPECT_EQ(cluster_refusal("= 200e9", "= \"fast\""),
            "p.toml: 'links.bytes_per_second' is not a number");
  EXPECT_EQ(cluster_refusal("nodes = 2", "nodes = 2.5"),
            "p.toml: 'fabric.nodes' is 2.5, not a whole number from 1 to 2147483647");
}

/// A page may have the rates of a kernel that the platform's lacks, all of a pass or none.
TEST(Cluster, APageHasRatesOfKernels) {
  const std::string page =
      "name = \"mine\"\ndescription = \"mine\"\nplatform = \"h100\"\n[rates.fa3.forward]\nmeasured "
      "= "
      "\"assumed\"\nflops_per_second = 700e12\nkeys_per_row = 310\n";
  const Cluster cluster = parse_cluster(page + "seconds_per_call = 1e-5\n", "p.toml");
  ASSERT_TRUE(cluster.platform.rates.at("fa3").forward);
  EXPECT_EQ(cluster.platform.rates.at("fa3").forward->keys_per_row, 310);
  EXPECT_FALSE(cluster.platform.rates.at("fa3").backward);
  EXPECT_EQ(sentence_of([&] { parse_cluster(page, "p.toml"); }),
            "p.toml: 'rates.fa3.forward.seconds_per_call' is missing: a number above 0");
  EXPECT_THAT(sentence_of([&] { parse_cluster(page + "keys = 1\n", "p.toml"); }),
              HasSubstr("unknown key 'rates.fa3.forward.keys'"));
}

TEST(Cluster, RefusesSharesThatLeaveNothing) {
  for (const char* key :
       {"node.covered_cost_within", "node.memory_slowdown_within", "fabric.kernel_slowdown"}) {
    Cluster cluster = parse_cluster(kPage, "p.toml");
    EXPECT_EQ(sentence_of([&] { set_figure(cluster, std::string(key) + "=1"); }),
              "'" + std::string(key) + "' is 1, not a share below 1");
  }
  EXPECT_EQ(cluster_refusal("[links]", "[error]\nmeasured = \"\"\np90 = 1\n[links]"),
            "p.toml: 'error.p90' is 1, not a share below 1");
}

TEST(Cluster, RefusesAnOversubscriptionTheOtherWayRound) {
  const std::string sentence =
      "'fabric.oversubscription' is 0.5, not 1 or more: it is the rate of a node's NICs over that "
      "of its links to other nodes, 2 where these carry half";
  EXPECT_EQ(set_refusal("fabric.oversubscription=0.5"), sentence);
  EXPECT_EQ(cluster_refusal("oversubscription = 1", "oversubscription = 0.5"),
            "p.toml: " + sentence);
  EXPECT_EQ(set_refusal("fabric.oversubscription=1"), "");
}

/// Its calls on GPUs take the times of their lists.
TEST(Cluster, RefusesRatesOfSliceOnGpus) {
  const std::string rates =
      "[rates.slice.forward]\nmeasured = \"here\"\nflops_per_second = 1e12\nkeys_per_row = 1\n"
      "seconds_per_call = 1e-5\n";
  const char* sentence = "p.toml: 'rates.slice' changes no simulated time";
  EXPECT_THAT(cluster_refusal("[links]", rates + "[links]"), HasSubstr(sentence));
  const std::string platform = cost::to_toml(cost::default_platform()) + rates;
  EXPECT_THAT(sentence_of([&] { parse_cluster(platform, "p.toml"); }), HasSubstr(sentence));
  EXPECT_THAT(set_refusal("rates.slice.forward.flops_per_second=1e12"),
              HasSubstr("unknown key 'rates.slice.forward.flops_per_second'"));
}

TEST(Cluster, ThoseOfTheProgramAreAllTaken) {
  for (const std::string& name : cluster_names()) EXPECT_NO_THROW(load_cluster(name)) << name;
}

/// A GPU keeps its share of the NICs' rate, unless their number is set.
TEST(Cluster, NicsFollowTheGpusOfANode) {
  const auto nics = [](const std::vector<std::string>& figures) {
    Cluster cluster = parse_cluster(kPage, "p.toml");  // 4 for 8 GPUs
    for (const std::string& figure : figures) set_figure(cluster, figure);
    return std::pair(cluster.fabric->nics, scaled_nics(cluster));
  };
  using Nics = std::pair<std::int64_t, std::string>;
  EXPECT_EQ(nics({}), Nics(4, ""));
  EXPECT_EQ(nics({"gpus_per_node=4"}),
            Nics(2, "fabric.nics is 2 with node.gpus=4: the page has 4 for 8"));
  EXPECT_EQ(nics({"node.gpus=16"}).first, 8);
  EXPECT_EQ(nics({"gpus_per_node=3"}).first, 2) << "rounded up";
  EXPECT_EQ(nics({"gpus_per_node=1"}).first, 1);
  EXPECT_EQ(nics({"gpus_per_node=1", "gpus_per_node=8"}), Nics(4, ""));
  EXPECT_EQ(nics({"gpus_per_node=4", "fabric.nics=3"}), Nics(3, ""));
  EXPECT_EQ(nics({"fabric.nics=3", "gpus_per_node=4"}), Nics(3, ""));
  Cluster node = load_cluster("h200");
  set_figure(node, "gpus_per_node=4");
  EXPECT_EQ(scaled_nics(node), "");
}

/// Records hold it.
TEST(Cluster, RefusesANameThatNoRecordTakes) {
  EXPECT_THAT(cluster_refusal("name = \"two\"", "name = \"My cluster\""),
              HasSubstr("p.toml: name 'My cluster' is no name"));
  EXPECT_THAT(cluster_refusal("name = \"two\"", "name = \"" + std::string(60, 'x') + "\""),
              HasSubstr("has 60 characters, and at most 48 fit"));
}

TEST(Cluster, RefusesWhatIsNoToml) {
  EXPECT_THAT(cluster_refusal("nics = 4", "nics = ="), HasSubstr("p.toml:11:"));
}

TEST(Cluster, RefusesMoreRanksThanGpus) {
  EXPECT_EQ(sentence_of([] { parse_cluster(kPage, "p.toml").require_ranks(17); }),
            "the platform two has 16 GPUs, and 17 ranks are asked for");
}

TEST(Cluster, OneFigureCanBeSet) {
  Cluster cluster = parse_cluster(kPage, "p.toml");
  set_figure(cluster, "node.gpus=4");
  set_figure(cluster, "fabric.nic_bytes_per_second=1e9");
  EXPECT_EQ(cluster.gpus(), 8);
  EXPECT_DOUBLE_EQ(cluster.fabric->nic_bytes_per_second, 1e9);
  EXPECT_THAT(set_refusal("node.gpu=4"), HasSubstr("did you mean 'node.gpus'?"));
  EXPECT_THAT(set_refusal("node.gpus"), HasSubstr("is not KEY=VALUE"));
  EXPECT_THAT(set_refusal("node.gpus=four"), HasSubstr("node.gpus"));
  EXPECT_THAT(set_refusal("node.gpus=0"), HasSubstr("'node.gpus' is 0"));
  Cluster node = load_cluster("h200");
  EXPECT_THAT(sentence_of([&] { set_figure(node, "fabric.nics=4"); }), HasSubstr("has no fabric"));
}

TEST(Cluster, AnUnknownKeyIsNamedBesideThoseThatThereAre) {
  EXPECT_EQ(set_refusal("fabric.nicks=2"),
            "unknown key 'fabric.nicks' (did you mean 'fabric.nics'?); keys of fabric are nodes, "
            "nics, nic_bytes_per_second, seconds_per_exchange, seconds_per_message, "
            "oversubscription, kernel_slowdown");
  EXPECT_EQ(set_refusal("foo=1"),
            "unknown key 'foo'; keys are gpus_per_node, nic_gbps and, as in "
            "links.bytes_per_second, those of device, memory, links, node, kernel.backward, "
            "slice.forward, slice.backward, call.forward, call.backward, fabric");
}

struct SmallPass {
  const char* mask;
  bool backward;
  bool sustained;
  int ranks = 4;
  std::int64_t tokens_per_rank = 1024;
  const char* scheme = "magi";
  std::int64_t block = 128;
  int heads_k = 8;
};

/// Its plans, which do not depend on the cluster.
std::vector<RankPlan> plans_of(const SmallPass& small) {
  ParallelProblem problem =
      problem_over(small.ranks, small.mask, small.tokens_per_rank, small.block);
  problem.problem.heads_k = small.heads_k;
  const Scheme& scheme = find_scheme(small.scheme);
  problem.shard = scheme.best_shard();
  std::vector<RankPlan> plans;
  for (int rank = 0; rank < problem.ranks; ++rank) plans.push_back(scheme.plan(problem, rank));
  return plans;
}

double seconds_of(const SmallPass& small, std::span<const RankPlan> plans, Cluster cluster) {
  cluster.fabric->nodes = 64;
  const SliceTimes slice(cluster.platform);
  const OpTimes times{&slice, &cluster.platform, 128, DType::bfloat16, small.sustained};
  std::vector<RankWork> works;
  for (const RankPlan& plan : plans) works.push_back(lower(plan, small.backward, times));
  Program program = link(std::move(works));
  if (small.sustained) {
    settle_clocks(program, cluster, slice,
                  small.backward ? cost::Pass::backward : cost::Pass::forward);
  }
  return run(program, cluster, Exchanges::run).end();
}

/// The cluster of kPage with another value of a figure, whether it has an effect or not.
Cluster with_figure(const std::string& key, const std::string& value) {
  Cluster cluster = parse_cluster(kPage, "p.toml");
  if (without_effect(key)) {
    const auto dot = key.rfind('.');
    return parse_cluster(kPage + "[" + key.substr(0, dot) + "]\nmeasured = \"\"\n" +
                             key.substr(dot + 1) + " = " + value + "\n",
                         "p.toml");
  }
  set_figure(cluster, key + "=" + value);
  return cluster;
}

/// What set_figure refuses changes nothing, and what it takes changes some pass.
TEST(Cluster, ANameIsAText) {
  EXPECT_THAT(cluster_refusal("[links]", "card = 5\n[links]"), HasSubstr("'card' is no text"));
}

TEST(Cluster, FiguresWithoutEffectAreThoseThatChangeNoTime) {
  const std::vector<SmallPass> passes = {
      {"causal_document", true, false},
      {"causal_document", false, true},
      {"block_sparse", false, false},
      {"block_sparse", true, false},
      {"sliding_window", true, true},
      {"full", false, false, 16},
      {"causal", true, false, 3, 1000},
      {"causal", true, false, 2, 8192},
      {"block_sparse", true, false, 2, 1000},
      {"block_sparse_variable", false, false, 2, 4096},
      {"block_sparse_variable", true, false, 2, 4096},
      {"block_sparse", false, false, 2, 4096, "ulysses", 64, 64},
      {"causal_document", true, false, 4, 2048, "ring_p2p"},
      {"causal_document", true, false, 16, 2048},
      {"causal", false, true, 4, 4096, "ring_p2p"},
      {"causal", true, false, 16, 1024, "ring_p2p"},
      {"sliding_window", true, true, 2, 8192, "ulysses"},
      {"causal_document", true, true, 2, 8192, "ulysses"},
  };
  const Cluster cluster = parse_cluster(kPage, "p.toml");
  std::vector<double> before;
  std::vector<std::vector<RankPlan>> plans;
  for (const SmallPass& pass : passes) {
    plans.push_back(plans_of(pass));
    before.push_back(seconds_of(pass, plans.back(), cluster));
  }
  std::vector<cost::Figure> figures = cost::figures_of(cluster.platform);
  for (const auto& [key, value] :
       std::map<std::string, double>{{"fabric.nics", 4},
                                     {"fabric.nic_bytes_per_second", 25e9},
                                     {"fabric.seconds_per_exchange", 20e-6},
                                     {"fabric.seconds_per_message", 5e-6},
                                     {"fabric.oversubscription", 1},
                                     {"fabric.kernel_slowdown", 0.05}}) {
    figures.push_back({key, value});
  }
  for (const cost::Figure& figure : figures) {
    bool changes = false;
    for (const double factor : {0.5, 8.0}) {
      const double value = std::min(figure.value * factor, figure.value < 1 ? 0.95 : 1e300);
      const bool is_whole = figure.value == std::floor(figure.value) && figure.value < 1e6;
      const Cluster changed = with_figure(
          figure.key, fmt::format("{}", is_whole ? std::max(std::floor(value), 1.0) : value));
      for (std::size_t i = 0; i < passes.size() && !changes; ++i) {
        changes = seconds_of(passes[i], plans[i], changed) != before[i];
      }
    }
    EXPECT_EQ(changes, !without_effect(figure.key)) << figure.key;
  }
}

TEST(Cluster, EqualFiguresAreOneText) {
  const Cluster cluster = parse_cluster(kPage, "p.toml");
  std::string renamed = kPage;
  renamed.replace(renamed.find("a datasheet"), 11, "a guess");
  EXPECT_EQ(figures_text(parse_cluster(renamed, "q.toml")), figures_text(cluster));
  EXPECT_EQ(figures_text(with_figure("kernel.any.flops_per_second", "1e12")),
            figures_text(cluster));
  EXPECT_NE(figures_text(with_figure("links.bytes_per_second", "1e9")), figures_text(cluster));
  EXPECT_NE(figures_text(with_figure("fabric.nics", "8")), figures_text(cluster));
  EXPECT_EQ(set_refusal("kernel.any.flops_per_second=1e12"),
            "'kernel.any.flops_per_second' changes no simulated time: nothing that is simulated "
            "takes it");
}

TEST(Cluster, FiguresCanBeSetByShortNames) {
  Cluster cluster = parse_cluster(kPage, "p.toml");
  set_figure(cluster, "gpus_per_node=4");
  set_figure(cluster, "nic_gbps=400");
  EXPECT_EQ(cluster.platform.node.gpus, 4);
  EXPECT_DOUBLE_EQ(cluster.fabric->nic_bytes_per_second, 50e9);
  EXPECT_THAT(set_refusal("nic_gbps=0"), HasSubstr("'nic_gbps' is 0, not a finite number above 0"));
  EXPECT_THAT(set_refusal("nic_gbps=1e308"), HasSubstr("not a finite number above 0"));
  EXPECT_THAT(set_refusal("gpus_per_node=2.5"), HasSubstr("'gpus_per_node' is 2.5"));
  EXPECT_THAT(set_refusal("nic_gbp=1"), HasSubstr("did you mean 'nic_gbps'?"));
  EXPECT_THAT(cluster_refusal("[links]", "nic_gbps = 4\n[links]"), HasSubstr("nic_gbps"))
      << "a page has keys alone";
  Cluster node = load_cluster("h200");
  EXPECT_THAT(sentence_of([&] { set_figure(node, "nic_gbps=4"); }),
              HasSubstr("'nic_gbps': the platform h200 has no fabric"));
}

TEST(Cluster, RefusesWhatIsNestedTooDeepForItsParser) {
  std::string key;
  for (int i = 0; i < 50'000; ++i) key += "a.";
  EXPECT_THAT(cluster_refusal("[links]", key + "a = 1\n[links]"),
              HasSubstr("p.toml:5: keys and values are nested deeper than 16"));
}

}  // namespace
}  // namespace longca::simulate
