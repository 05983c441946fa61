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
#include "bench/case.h"
#include "mask/generators.h"

namespace longca {

/// Called with what begins now: "inputs", "reference", "plan", "forward", "verify", "backward",
/// "time", "dump", "selection", "clean-up".
using StageListener = std::function<void(std::string_view stage)>;

/// What cells of one problem share: its mask, and on demand its inputs and reference.
struct CellProblem {
  /// Generates the mask. On a GPU its blocks go to the device's memory as well, so that no kernel's
  /// plan counts that.
  explicit CellProblem(const Case& c);

  /// Nothing if they are there.
  void make_inputs_and_reference(const Case& c, double budget_s, const StageListener& listener);

  std::string key;
  MaskSpec spec;
  GeneratedMask generated;
  std::int64_t rows_without_keys = 0;  ///< of a mask with blocks, over its lists
  std::uint64_t inputs_fingerprint = 0;
  Inputs inputs;
  std::unique_ptr<Verifier> reference;
  // What the first cell that asks for it finds out (cell_selection.h).
  std::optional<double> selection_ms;
  std::optional<SelectionQuality> quality;
};

}  // namespace longca
