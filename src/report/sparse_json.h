#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "report/dense_comparison.h"

namespace longca {

/// Block-sparse attention beside dense as the page's scripts read it (src/report/html/sparse.js):
///   {"common", "tables":[{"blocks":"block_sparse · heads 64:8 · block 64","pass"}…],
///    "groups":[{"table": index,"tokens","dense":{"kernel","mask","time_ms",…}|null}…],
///    "lines":[{"group": index,"kernel","break_even","break_even_in_all"}…]}
/// or null for a comparison without tables.
class SparseJson {
 public:
  explicit SparseJson(const DenseComparison& comparison);

  const nlohmann::json& json() const { return json_; }
  /// The index of the line that the cell belongs to; nothing if it belongs to none.
  std::optional<std::size_t> line_of(const Record& record) const;

 private:
  void add(const DensityTable& table);

  nlohmann::json json_;
  std::map<const Record*, std::size_t> lines_;
};

}  // namespace longca
