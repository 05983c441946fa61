#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "attention/api/kernel.h"
#include "core/memory.h"

namespace longca {

/// A kernel's plans for the steps of a rank, one per shape and mask: first requested, then made.
class KernelPlans {
 public:
  explicit KernelPlans(const Kernel& kernel) : kernel_(kernel) {}

  /// Requests a plan. Returns the kernel's answer and, if it is ok, sets `index` to the plan's.
  Support want(const Problem& problem, const Mask& mask, std::size_t& index);
  /// Requests that plan `index` keep rows (Plan::keep_rows) if it can and memory allows; earlier
  /// requests come first.
  void want_rows(std::size_t index) { rows_wanted_.push_back(index); }
  /// Makes what was requested since the last call. A plan has a backward pass if one of its steps
  /// has.
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
  Buffer scratch_;  ///< shared by all plans, which run one after the other
  std::vector<Entry> entries_;
  std::vector<std::size_t> rows_wanted_;
};

}  // namespace longca
