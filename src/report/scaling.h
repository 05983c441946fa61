#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "bench/record/record.h"

namespace longca {

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

/// As few as show each record over ranks in the company of most other ranks; those of most numbers
/// of ranks first, then total lengths before lengths per rank, then by length.
std::vector<Scaling> make_scalings(std::span<const Record> records);

/// What a kernel runs at without communication, per rank.
struct Baseline {
  double tflops = 0;       ///< 0: not known
  std::string name;        ///< "one device" or "1 rank"
  bool same_work = false;  ///< of the same total length; else of as many tokens as a rank has
};

/// Finds for a cell over ranks the rate of the same kernel, mask, shape and pass: on one device at
/// the same total length where `single` has it, else of one rank, the fastest scheme, at the same
/// total length, else of one rank at the same tokens per rank. On the CPU one process has all cores
/// to itself, so that its rate is divided by the ranks, and the name says so.
class Baselines {
 public:
  Baselines(std::span<const Record> single, std::span<const Record> over_ranks);
  Baseline of(const Case& c) const;

 private:
  std::map<std::string, Baseline> by_work_;  // by the key without the scheme's axes
};

}  // namespace longca
