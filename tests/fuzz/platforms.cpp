// Pages of platforms and clusters, and figures that are set by hand.

#include "core/printable.h"
#include "cost/platform.h"
#include "fuzz.h"
#include "simulate/cluster.h"

namespace longca::fuzz {

void fuzz(std::string_view text) {
  accepts([&] {
    const cost::Platform platform = cost::parse_platform(text, "p.toml");
    for (const cost::Figure& figure : cost::figures_of(platform)) {
      require(figure.value > 0, figure.key + " is not above 0");
    }
    const std::string page = cost::to_toml(platform);
    require(cost::parse_platform(page, "again") == platform, "changed: " + printable(page));
  });
  accepts([&] {
    const simulate::Cluster cluster = simulate::parse_cluster(text, "p.toml");
    require(cluster.gpus() > 0, "a cluster without GPUs");
  });
  if (text.find('\0') != text.npos) return;  // no argument of a program
  accepts([&] {
    static const simulate::Cluster kCluster = simulate::load_cluster("h200x8_ib400");
    simulate::Cluster cluster = kCluster;
    simulate::set_figure(cluster, text);
    require(cluster.gpus() > 0, "a cluster without GPUs");
  });
}

}  // namespace longca::fuzz
