#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/record/record.h"
#include "report/view.h"

namespace longca {

// What views of cells over ranks derive from the records: scalings, baselines, shares.

/// Lengths at which numbers of ranks are compared: one in total (strong scaling), or one per rank
/// (weak scaling).
struct Scaling {
  std::int64_t tokens = 0;
  bool per_rank = false;

  bool contains(const Case& c) const;
  /// "64K tokens" or "8K tokens per rank".
  std::string label() const;

  bool operator==(const Scaling&) const = default;
};

/// The fewest scalings that contain every record over ranks, chosen greedily: first those with most
/// numbers of ranks, then total lengths before lengths per rank, then by length.
std::vector<Scaling> make_scalings(std::span<const Record> records);

/// A kernel's rate without communication, per rank.
struct Baseline {
  double tflops = 0;       ///< 0: not known
  std::string name;        ///< "one device" or "1 rank"
  bool same_work = false;  ///< measured at the same total length, not at the tokens of one rank
};

/// Finds the rate of the same kernel, mask, shape and pass as a cell over ranks, on its machine. In
/// this order: on one device (`single`) at the same total length; on one rank, fastest scheme, at
/// the same total length; on one rank at the same tokens per rank. On the CPU, where one process
/// uses all cores, the rate is divided by the number of ranks, and the name says so.
class Baselines {
 public:
  Baselines(std::span<const Record> single, std::span<const Record> over_ranks);
  Baseline of(const Record& record) const;

 private:
  std::map<std::string, Baseline> by_work_;  // by the machine and the key without the scheme's axes
};

/// exposed_comm_ms / time_ms, in percent.
std::optional<double> exposed_percent(const Record* record);

/// Compares the bytes sent with the scheme's formula.
enum class BytesCheck { unknown, equal, differs };
BytesCheck check_bytes(const Record* record);
/// "=", "≠" or "".
std::string_view mark_of(BytesCheck check);

/// Cells whose bytes sent differ from the formula, in the view's order.
std::vector<const Record*> cells_off_formula(const View& view);

}  // namespace longca
