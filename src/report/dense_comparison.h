#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/record/record.h"
#include "report/break_even.h"
#include "report/view.h"

namespace longca {

/// Block-sparse cells over their densities, beside the fastest dense kernel of the same length,
/// heads and pass: what the views of block-sparse attention show.
///
///     tables     one per mask, setting of the other axes and pass
///       groups   one per length, with its dense record
///         lines  one per kernel, its cells by density

struct DensityLine {
  std::string kernel;
  std::vector<const Record*> cells;  ///< by ascending density; of any status
  BreakEven kernel_time;             ///< of time_ms
  BreakEven end_to_end;              ///< of end_to_end_ms: selection and planning too

  const Record* at(double density) const;  ///< nullptr if there is none
  bool has_number() const;
};

struct DensityGroup {
  std::int64_t tokens = 0;
  /// The fastest `ok` cell of the mask `full`, or `causal` where the block mask is causal, of the
  /// same heads, head dimension, dtype, device, mode and machine, whatever its seed and inputs;
  /// nullptr if there is none.
  const Record* dense = nullptr;
  std::vector<DensityLine> lines;

  bool has_number() const;
  /// The fastest line's cell at the density; nullptr if none has a number.
  const Record* fastest(double density) const;
  /// A metric of the blocks rather than the kernel, from the first cell of the density that has it.
  std::optional<double> metric_at(double density, const std::string& name) const;
  /// The largest over the kernels.
  std::optional<double> largest_at(double density, const std::string& name) const;
};

struct DensityTable {
  std::string mask;
  Pass pass = Pass::forward;
  AxisTexts setting;              ///< what sets it apart from other tables of the mask and pass
  std::vector<double> densities;  ///< ascending
  std::vector<DensityGroup> groups;

  /// "block_sparse, forward".
  std::string title() const;
  bool has_number() const;
  /// Whether some cell has the metric.
  bool has(const std::string& metric) const;
};

struct DenseComparison {
  AxisTexts common;                  ///< axes with one value
  std::vector<std::string> kernels;  ///< of all records, in order of first appearance
  RateUnit unit{};
  std::vector<DensityTable> tables;

  bool has(const std::string& metric) const;
};

/// Of cells on one device (SplitRecords::single), to which the result points. Without tables unless
/// some problem was measured at several densities or has selected blocks: one density at random is
/// a row of the ordinary table like any other.
DenseComparison compare_with_dense(std::span<const Record> records);

// Ratios of a cell's metrics to the dense cell's, where both were measured; `dense` may be null.
std::optional<double> time_of_dense(const Record* record, const Record* dense);
std::optional<double> end_to_end_of_dense(const Record* record, const Record* dense);
std::optional<double> memory_of_dense(const Record* record, const Record* dense);
/// selection_ms / end_to_end_ms.
std::optional<double> selection_share(const Record* record);

}  // namespace longca
