#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/record/record.h"
#include "bench/suite/case.h"
#include "simulate/cluster.h"
#include "simulate/kernel_times.h"
#include "simulate/program.h"

namespace longca {

/// Rates of kernels from cells on one GPU, of whichever kernels the records have.
class MeasuredRates {
 public:
  /// Takes the cells on one GPU that are ok; others are left.
  explicit MeasuredRates(std::span<const Record> records);

  /// Those of the case's kernel, shape and mask; nothing if a pass was not measured. Long runs are
  /// slower than short ones (power): cells that take about as long as a rank, whose part of the
  /// mask has `area` allowed cells per head, count most. `known`: what calls and rows of this
  /// kernel take beside their cells, if a platform says so.
  std::optional<simulate::KernelTimes> find(const Case& c, double area,
                                            const simulate::KernelTimes* known) const;
  /// Whether the kernel's passes were measured at all.
  bool has(const Case& c) const { return find(c, 0, nullptr).has_value(); }

 private:
  struct Cell {
    Case c;
    simulate::TimedCall call;
  };
  simulate::CallRate rate(const Case& c, Pass pass, double area,
                          const simulate::KernelTimes* known) const;

  std::vector<Cell> cells_;
};

/// What a cell's simulation is made of, for whoever wants more than its record.
struct CellDetail {
  std::function<void(const std::string& sentence)> explain{};  ///< the critical path, line by line
  std::string trace{};                                         ///< a file, "" for none
};

/// The case as a record names it: of mode `simulated`, on this platform, over NCCL where it leaves
/// a node.
Case simulated_case(Case c, const simulate::Cluster& cluster);

/// Why a case has no simulation: the scheme, or no rates of its kernel. Ok if it has one.
Status refusal(const Case& c, const simulate::Cluster& cluster, const MeasuredRates& rates);

/// Fills in the record of a case of `simulated_case`, by plans that it makes for all ranks.
void simulate_cell(const Case& c, const simulate::Cluster& cluster, const MeasuredRates& rates,
                   const CellDetail& detail, Record& record);

}  // namespace longca
