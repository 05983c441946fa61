#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "attention/api/kernel.h"
#include "core/memory.h"

namespace longca {

/// The plans that a kernel makes for the steps of a rank, one for all steps of equal shape and
/// mask: first wanted, then made.
class KernelPlans {
 public:
  explicit KernelPlans(const Kernel& kernel) : kernel_(kernel) {}

  /// Asks the kernel and, if it can, sets `index` to the plan's.
  Support want(const Problem& problem, const Mask& mask, std::size_t& index);
  /// That plan is to prepare rows, if it can, and if those that were named before leave room.
  void want_rows(std::size_t index) { rows_wanted_.push_back(index); }
  /// Makes what is wanted and not made yet. A plan has its backward pass if one of its steps has.
  void make();
  Plan& operator[](std::size_t index) const { return *entries_[index].plan; }
  bool keeps_rows(std::size_t index) const { return entries_[index].keeps_rows; }

  std::int64_t workspace_bytes() const;
  double compile_ms() const;
  std::map<std::string, std::string> notes() const;

 private:
  struct Entry {
    Problem problem;
    Mask mask;
    std::unique_ptr<Plan> plan;
    bool keeps_rows = false;  ///< Plan::keep_rows has allocated memory
  };
  void keep_rows();
  void share_scratch();

  const Kernel& kernel_;
  Buffer scratch_;  ///< of all plans: they run one after the other
  std::vector<Entry> entries_;
  std::vector<std::size_t> rows_wanted_;
};

}  // namespace longca
