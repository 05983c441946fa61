#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/record/record.h"
#include "report/break_even.h"
#include "report/view.h"

namespace longca {

/// Block-sparse cells over their densities, compared with the fastest dense kernel of the same
/// length, heads and pass. All views of block-sparse attention show this.
///
///     tables     one per mask, setting of the other axes and pass
///       groups   one per length, with its dense record
///         lines  one per kernel, its cells by density

struct DensityLine {
  std::string kernel;
  std::vector<const Record*> cells;  ///< by ascending density; of any status
  BreakEven kernel_time;             ///< of time_ms
  BreakEven end_to_end;              ///< of end_to_end_ms: with selection and planning

  const Record* at(double density) const;  ///< nullptr if there is none
  bool has_number() const;
};

struct DensityGroup {
  std::int64_t tokens = 0;
  /// The fastest `ok` cell of mask `full` (`causal` if the block mask is causal) with the same
  /// heads, head dimension, dtype, sink, softcap, determinism, device, mode and machine; its seed
  /// may differ, and its inputs are the same or, where none has those, normal. nullptr if there is
  /// none.
  const Record* dense = nullptr;
  std::vector<DensityLine> lines;
  /// The fastest cells of each density and the ties with them, where others could be faster: what
  /// Ranking::is_marked marks.
  std::vector<const Record*> marked{};

  bool has_number() const;
  bool is_marked(const Record* cell) const;
  /// What the dense cell differs in from these, "inputs normal"; else "".
  std::string dense_difference() const;
  /// The fastest line's cell at the density; nullptr if none has a number.
  const Record* fastest(double density) const;
  /// A metric that all kernels share (it describes the blocks), from the first cell that has it.
  std::optional<double> metric_at(double density, const std::string& name) const;
  /// The largest over the kernels.
  std::optional<double> largest_at(double density, const std::string& name) const;
};

struct DensityTable {
  std::string mask;
  Pass pass = Pass::forward;
  AxisTexts setting;              ///< what distinguishes it from other tables of the mask and pass
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

/// Compares cells on one device (SplitRecords::single), to which the result points. Without tables
/// unless some problem was measured at several densities or has selected blocks: random blocks of a
/// single density are ordinary rows of the ordinary table.
DenseComparison compare_with_dense(std::span<const Record> records);

}  // namespace longca
