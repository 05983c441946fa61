#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "attention/api/problem.h"
#include "mask/mask.h"
#include "parallel/schemes/build/joint_split.h"

namespace longca {

/// When one rank would end its passes, in seconds, by its cells, bytes and calls (rates.h): with
/// rows divided, or keys.
class JointCosts {
 public:
  /// `rows_of_all`: the mask of the rank's own rows, `own_tokens` of them, and all keys. All
  /// arguments outlive this object.
  JointCosts(const Problem& problem, std::int64_t own_tokens, const CastTraffic& traffic,
             const Mask& rows_of_all);

  double forward_by_rows(const std::vector<Range>& alone, const std::vector<Range>& joint) const;
  /// The first `early` ranges of rows that need own keys come before the joint ones.
  double backward_by_rows(const std::vector<Range>& alone, const std::vector<Range>& joint,
                          std::size_t early) const;
  /// Both passes; in the backward pass half of the own work waits until the end. `calls`: of the
  /// rows that see foreign keys; `foreign`: the mask of own rows and foreign keys.
  double by_keys(const std::vector<Range>& calls, const Mask& foreign) const;

 private:
  std::vector<double> cells_of(const std::vector<Range>& rows, double keys_per_row) const;
  /// Of calls with so many cells.
  double forward_of(const std::vector<double>& calls) const;
  double backward_of(const std::vector<double>& calls) const;
  double row_seconds(int heads) const;
  /// Of what a backward pass begins with before any key is there.
  double row_terms() const;
  /// Of gradients that arrive, and of so many own keys that several calls or ranks add to.
  double rounding(std::int64_t own_keys) const;

  const Problem& problem_;
  std::int64_t own_tokens_;
  std::int64_t sent_;
  const Mask& rows_of_all_;
  double fetch_ = 0;
  double reduce_ = 0;
};

}  // namespace longca
