#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "attention/inputs/inputs.h"
#include "attention/reference/verifier.h"
#include "attention/selection/quality.h"
#include "bench/suite/case.h"
#include "mask/generators.h"

namespace longca {

/// The mask of a case: as its spec draws it or, where blocks are selected by scores, from the whole
/// q and k, drawn on the case's device, so that every rank selects the same blocks.
GeneratedMask case_mask(const Case& c);

/// Called with the name of the stage that begins: "inputs", "reference", "plan",
/// "forward", "verify", "backward", "timing", "trace", "dump", "selection", "clean-up".
using StageListener = std::function<void(std::string_view stage)>;

/// What cells of one problem share: its mask, and on demand its inputs and reference.
struct CellProblem {
  /// Generates the mask. On a GPU also copies its blocks to the device, so that no kernel's plan
  /// time includes that.
  explicit CellProblem(const Case& c);

  /// Makes the inputs and the reference of both passes, once.
  void make_inputs_and_reference(const Case& c, double budget_s, const StageListener& listener);

  std::string key;
  MaskSpec spec;
  GeneratedMask generated;
  std::int64_t rows_without_keys = 0;  ///< of a mask with blocks, summed over its lists
  std::uint64_t inputs_fingerprint = 0;
  Inputs inputs;
  std::unique_ptr<Verifier> reference;
  // Measured by the first cell that needs them (selection.h).
  std::optional<double> selection_ms;
  std::optional<SelectionQuality> quality;
};

}  // namespace longca
