#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "mask/mask.h"

namespace longca {

/// Consecutive tokens of one atom of a mask (atoms.h), and the cells of their rows.
struct AtomPart {
  Range tokens;
  double area = 0;
  std::size_t atom = 0;
};

/// The atoms of a mask, and where to cut them: in grains, counted from the atom's begin.
class AtomAreas {
 public:
  /// `atoms`: ascending. The mask must outlive this.
  AtomAreas(const Mask& mask, std::span<const Range> atoms, std::int64_t grain);

  const std::vector<AtomPart>& atoms() const { return atoms_; }
  std::int64_t grain() const { return grain_; }
  double area(Range rows) const;

  /// Of rows of an atom; where these do not begin and end where it may be cut, about.
  double about_area(std::size_t atom, Range rows);

  /// The end of a part that has about `excess` cells beyond `filling` per token, or if none has so
  /// many, the longest of at most `most` tokens. At least a grain, if the part has it.
  AtomPart end_of(const AtomPart& part, double excess, double filling, std::int64_t most);

 private:
  const std::vector<double>& areas_until(std::size_t atom);

  const Mask& mask_;
  std::int64_t grain_;
  std::vector<AtomPart> atoms_;
  std::vector<std::vector<double>> areas_until_;  ///< per atom: of its first 0, 1, 2, … grains
};

}  // namespace longca
