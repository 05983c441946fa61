#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "mask/mask.h"

namespace longca {

/// Cuts the token axis of a square mask without block lists into the smallest parts across whose
/// borders no query sees a key, in either direction. Ascending, together all tokens; each packed
/// document is one part, whatever made the mask. Where that gives a single part, slices longer than
/// half of the tokens are ignored: their keys, as of a question that all documents share, are seen
/// by most CP ranks wherever tokens are.
///
/// Parts of fewer than `min_tokens` tokens are joined with the next; so are neighbouring tokens
/// that see nothing but themselves.
std::vector<Range> mask_atoms(const Mask& mask, std::int64_t min_tokens);

/// Consecutive tokens of one atom of a mask, and the cells of their rows.
struct AtomPart {
  Range tokens;
  double area = 0;
  std::size_t atom = 0;
};

/// The atoms of a mask, and where they may be cut: at multiples of a grain from an atom's begin.
class AtomAreas {
 public:
  /// `atoms`: ascending. The mask must outlive this.
  AtomAreas(const Mask& mask, std::span<const Range> atoms, std::int64_t grain);

  const std::vector<AtomPart>& atoms() const { return atoms_; }
  std::int64_t grain() const { return grain_; }
  double area(Range rows) const;

  /// The area of rows of an atom; interpolated where they begin or end within a grain.
  double about_area(std::size_t atom, Range rows);

  /// The end of a part that has about `excess` cells more than `filling` per token: at most `most`
  /// tokens, and at least a grain if the part has one.
  AtomPart end_of(const AtomPart& part, double excess, double filling, std::int64_t most);

 private:
  const std::vector<double>& areas_until(std::size_t atom);

  const Mask& mask_;
  std::int64_t grain_;
  std::vector<AtomPart> atoms_;
  std::vector<std::vector<double>> areas_until_;  ///< per atom: of its first 0, 1, 2, … grains
};

}  // namespace longca
