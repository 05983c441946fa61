#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/record/record.h"
#include "bench/suite/case.h"
#include "simulate/cluster.h"
#include "simulate/kernel_times.h"
#include "simulate/program.h"

namespace longca {

/// Whether MeasuredRates takes the record: a cell on one GPU, of mode `burst` or `sustained`, that
/// is ok, whose v has the dimension of q and k, and whose blocks are not selected by scores.
bool is_rate(const Record& record);

/// Rates of kernels from cells on one GPU, of whichever kernels the records have.
class MeasuredRates {
 public:
  /// Takes the records that are rates; others are left.
  explicit MeasuredRates(std::span<const Record> records);

  /// Of slice, the times of the platform's page and what the kernel's passes took on its cells over
  /// them, which is needed where !slice_is_of_page; of another kernel, rates for the case's shape
  /// and mask: long runs are slower than short ones (power), and cells that take about as long as a
  /// rank, whose part of the mask has `area` allowed cells per head, count most. Without such
  /// cells, the kernel's rates on the platform's page. `platform` outlives the result. Null if
  /// neither has a pass of a kernel other than slice.
  std::unique_ptr<simulate::KernelTimes> times(const Case& c, double area,
                                               const cost::Platform& platform) const;
  /// Whether the kernel's passes were measured.
  bool has(const Case& c) const;

 private:
  struct Cell {
    Case c;
    simulate::TimedCall call;
  };
  /// Of the case's kernel, shape, softcap or none, and this pass, and of the mode that it stands
  /// for if there are any.
  std::vector<const Cell*> cells_like(const Case& c, Pass pass) const;
  simulate::CallRate rate(const Case& c, Pass pass, double area) const;
  /// The mean (of logarithms) of what cells of slice took over what the platform's page says; 1 for
  /// no cells. fit_slice must have been called for the case.
  double slice_factor(const Case& c, Pass pass, const cost::Platform& platform) const;
  /// Finds the factors of the passes that the case runs, where they are not known, by several
  /// threads. Not thread-safe.
  void fit_slice(const Case& c, const cost::Platform& platform) const;

  std::vector<Cell> cells_;
  mutable std::map<std::string, double> factors_;  ///< of slice, by shape, pass and platform
};

/// Whether a platform's figures of slice are of the case's heads: of 128 and without a softcap.
/// Others take times that do not follow from these.
bool slice_is_of_page(const Case& c);

/// Whether gradients are added in a fixed order, which takes time that is not simulated.
bool has_fixed_order(const Case& c);

/// What a cell's simulation is made of, for whoever wants more than its record.
struct CellDetail {
  std::function<void(const std::string& sentence)> explain{};  ///< the critical path, line by line
  std::string trace{};                                         ///< a file, "" for none
  /// Whether passes over memory merge all results, whatever the kernel could merge.
  bool merges_in_passes = false;
};

/// Makes the mode `simulated`; `sustained` becomes the one that the case stands for.
void set_simulated_mode(Case& c);

/// Where a case's transport comes from: `found` for it, as where nobody said one, or asked for.
enum class Transport : std::uint8_t { found, asked };

/// The case as a record names it: of mode `simulated`, on this platform. Where it leaves a node,
/// `peer` that was found for it becomes `nccl`; asked for, it stays, and is refused.
Case simulated_case(Case c, const simulate::Cluster& cluster,
                    Transport transport = Transport::found);

/// Why a case has no simulation: its transport, the kernel, the scheme, or no rates of its kernel.
/// Ok if it has one.
Status refusal(const Case& c, const simulate::Cluster& cluster, const MeasuredRates& rates);

/// Fills in the record of a case of `simulated_case`, by plans that it makes for all ranks.
void simulate_cell(const Case& c, const simulate::Cluster& cluster, const MeasuredRates& rates,
                   const CellDetail& detail, Record& record);

}  // namespace longca
