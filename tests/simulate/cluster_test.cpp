#include "simulate/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "core/error.h"

namespace longca::simulate {
namespace {

using ::testing::HasSubstr;

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
  for (const char* key : {"node.covered_cost_within", "node.memory_slowdown_within",
                          "fabric.kernel_slowdown", "error.p90"}) {
    Cluster cluster = parse_cluster(kPage, "p.toml");
    EXPECT_EQ(sentence_of([&] { set_figure(cluster, std::string(key) + "=1"); }),
              "'" + std::string(key) + "' is 1, not a share below 1");
  }
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
