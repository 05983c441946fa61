#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace longca::simulate {

/// Flows over links that share bandwidth by max-min fairness (D. Bertsekas, R. Gallager, "Data
/// Networks", 1992, section 6.5): no flow can be faster without slowing one that is no faster.
/// Only flows that a change can reach over shared links are computed anew.
class FluidLinks {
 public:
  /// Called with a flow and the time at which it ends, unless flows change before; a later call
  /// for the same flow replaces the earlier one.
  using EndListener = std::function<void(int flow, double end)>;

  int add_link(double bytes_per_second);
  /// Adds a flow over distinct links; it moves nothing yet. Returns its number.
  int add_flow(std::span<const int> links, double bytes);

  /// From the next `settle` on the flow moves, or holds no bandwidth any more.
  void start(int flow);
  void finish(int flow);
  /// Computes the rates from `now` on where flows were started or finished. Times do not descend.
  void settle(double now, const EndListener& listener);

  /// Bytes per second, as of the last `settle`.
  double rate(int flow) const { return flows_[static_cast<std::size_t>(flow)].rate; }

 private:
  struct Flow {
    std::vector<int> links;
    double left = 0;  ///< bytes, at `since`
    double rate = 0;
    double since = 0;
    bool fresh = false;  ///< started, and without a rate yet
    std::uint32_t seen = 0;
    bool fixed = false;
  };
  struct Link {
    double capacity = 0;
    std::vector<int> flows;  ///< those that move
    std::uint32_t seen = 0;
    double left = 0;
    int unfixed = 0;
  };

  void gather(int link);
  void fill();
  void fix(int flow, double rate);

  std::vector<Flow> flows_;
  std::vector<Link> links_;
  std::vector<int> changed_;  ///< links whose flows have changed since the last settle
  std::uint32_t round_ = 0;
  std::vector<int> reached_links_, reached_flows_;
};

}  // namespace longca::simulate
