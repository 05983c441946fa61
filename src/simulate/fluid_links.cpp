#include "simulate/fluid_links.h"

#include <algorithm>
#include <limits>

#include "core/error.h"

namespace longca::simulate {
namespace {

std::size_t index_of(int index) {
  return static_cast<std::size_t>(index);
}

}  // namespace

int FluidLinks::add_link(double bytes_per_second) {
  LONGCA_CHECK(bytes_per_second > 0, "a link of {} bytes/s", bytes_per_second);
  links_.push_back({.capacity = bytes_per_second, .flows = {}});
  return static_cast<int>(links_.size()) - 1;
}

int FluidLinks::add_flow(std::span<const int> links, double bytes) {
  flows_.push_back({.links = {links.begin(), links.end()}, .left = bytes});
  return static_cast<int>(flows_.size()) - 1;
}

void FluidLinks::start(int flow) {
  Flow& started = flows_[index_of(flow)];
  started.fresh = true;
  for (const int link : started.links) {
    links_[index_of(link)].flows.push_back(flow);
    changed_.push_back(link);
  }
}

void FluidLinks::finish(int flow) {
  for (const int link : flows_[index_of(flow)].links) {
    std::vector<int>& flows = links_[index_of(link)].flows;
    flows.erase(std::ranges::find(flows, flow));
    changed_.push_back(link);
  }
}

/// Collects the flows over the link, and all that share a link with one of these, and so on.
void FluidLinks::gather(int link) {
  std::size_t next = reached_links_.size();
  const auto reach = [&](int other) {
    if (links_[index_of(other)].seen == round_) return;
    links_[index_of(other)].seen = round_;
    reached_links_.push_back(other);
  };
  reach(link);
  for (; next < reached_links_.size(); ++next) {
    for (const int flow : links_[index_of(reached_links_[next])].flows) {
      if (flows_[index_of(flow)].seen == round_) continue;
      flows_[index_of(flow)].seen = round_;
      reached_flows_.push_back(flow);
      std::ranges::for_each(flows_[index_of(flow)].links, reach);
    }
  }
}

void FluidLinks::fix(int flow, double rate) {
  flows_[index_of(flow)].fixed = true;
  flows_[index_of(flow)].rate = rate;
  for (const int link : flows_[index_of(flow)].links) {
    links_[index_of(link)].left = std::max(links_[index_of(link)].left - rate, 0.0);
    --links_[index_of(link)].unfixed;
  }
}

/// Fixes the flows of the link that gives its flows least, then of the next one.
void FluidLinks::fill() {
  for (const int link : reached_links_) {
    links_[index_of(link)].left = links_[index_of(link)].capacity;
    links_[index_of(link)].unfixed = static_cast<int>(links_[index_of(link)].flows.size());
  }
  for (const int flow : reached_flows_) flows_[index_of(flow)].fixed = false;
  while (true) {
    int tightest = -1;
    double share = std::numeric_limits<double>::infinity();
    for (const int link : reached_links_) {
      const Link& l = links_[index_of(link)];
      if (l.unfixed == 0 || l.left / l.unfixed >= share) continue;
      share = l.left / l.unfixed;
      tightest = link;
    }
    if (tightest < 0) return;
    for (const int flow : links_[index_of(tightest)].flows) {
      if (!flows_[index_of(flow)].fixed) fix(flow, share);
    }
  }
}

void FluidLinks::settle(double now, const EndListener& listener) {
  ++round_;
  std::ranges::sort(changed_);
  for (const int first : changed_) {
    if (links_[index_of(first)].seen == round_) continue;
    reached_links_.clear();
    reached_flows_.clear();
    gather(first);
    std::ranges::sort(reached_links_);  // sums do not depend on who was reached first
    for (const int flow : reached_flows_) {
      Flow& f = flows_[index_of(flow)];
      if (!f.fresh) f.left = std::max(f.left - f.rate * (now - f.since), 0.0);
      f.fresh = false;
      f.since = now;
    }
    fill();
    for (const int flow : reached_flows_) {
      const Flow& f = flows_[index_of(flow)];
      listener(flow, now + f.left / f.rate);
    }
  }
  changed_.clear();
}

}  // namespace longca::simulate
