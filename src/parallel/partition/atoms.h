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
/// half of the tokens are ignored: most CP ranks see their keys (of a question that all documents
/// share, say) under any partition.
///
/// Neighbouring parts that are both shorter than `min_tokens` tokens are joined; so are
/// neighbouring tokens that see nothing but themselves.
std::vector<Range> mask_atoms(const Mask& mask, std::int64_t min_tokens);

/// Consecutive tokens of one atom, and the area (allowed cells) of their rows.
struct AtomPart {
  Range tokens;
  double area = 0;
  std::size_t atom = 0;
};

/// The atoms of a mask and the areas of their rows. Atoms may be cut at multiples of a grain
/// (tokens) from their begin.
class AtomAreas {
 public:
  /// `atoms`: ascending. The mask must outlive this.
  AtomAreas(const Mask& mask, std::span<const Range> atoms, std::int64_t grain);

  const std::vector<AtomPart>& atoms() const { return atoms_; }
  std::int64_t grain() const { return grain_; }
  double area(Range rows) const;

  /// The area of rows of an atom; interpolated where they begin or end within a grain.
  double about_area(std::size_t atom, Range rows);

  /// The end of `part` with about `excess` cells more than `filling` per token: at most
  /// `max_tokens` tokens, but at least a grain, or the part if it is shorter.
  AtomPart end_of(const AtomPart& part, double excess, double filling, std::int64_t max_tokens);

 private:
  const std::vector<double>& areas_until(std::size_t atom);

  const Mask& mask_;
  std::int64_t grain_;
  std::vector<AtomPart> atoms_;
  std::vector<std::vector<double>> areas_until_;  ///< per atom: of its first 0, 1, 2, … grains
};

}  // namespace longca
