#pragma once

#include <cstdint>
#include <vector>

#include "parallel/partition/atoms.h"

namespace longca {

/// The state of an assignment: which CP rank has which parts of a mask's atoms. All CP ranks have
/// room for equally many tokens (±1), and each should get the same area (allowed cells).
class PartPacking {
 public:
  /// Starts empty: each atom is a part without an owner.
  PartPacking(AtomAreas& atoms, int cp_ranks);

  int cp_ranks() const { return static_cast<int>(cp_ranks_.size()); }
  int parts() const { return static_cast<int>(parts_.size()); }
  std::int64_t tokens() const { return tokens_; }
  /// Tokens; parts begin and end at multiples of this from their atom's begin.
  std::int64_t grain() const { return atoms_->grain(); }
  /// The area that each CP rank should get.
  double share() const { return share_; }

  double area(int part) const { return of(part).area; }
  std::int64_t size(int part) const { return of(part).tokens.size(); }
  Range tokens_of(int part) const { return of(part).tokens; }
  /// −1: none.
  int owner(int part) const { return links_[static_cast<std::size_t>(part)].owner; }
  /// The neighbours in the same atom; −1 where there is none.
  int before(int part) const { return links_[static_cast<std::size_t>(part)].before; }
  int after(int part) const { return links_[static_cast<std::size_t>(part)].after; }
  std::int64_t free_tokens(int cp_rank) const { return at(cp_rank).free_tokens; }
  const std::vector<int>& held(int cp_rank) const { return at(cp_rank).parts; }

  /// The expected cells per token of the parts that are not assigned yet.
  void set_filling(double cells_per_token) { filling_ = cells_per_token; }
  /// The area that a CP rank still needs beyond what is expected to fill its free tokens.
  double need(int cp_rank) const {
    const CpRank& p = at(cp_rank);
    return p.missing - p.bias - filling_ * static_cast<double>(p.free_tokens);
  }
  /// Lowers a CP rank's need by this much area.
  void set_bias(int cp_rank, double area) { at(cp_rank).bias = area; }
  /// The area of a part beyond what is expected of its tokens.
  double excess(int part) const { return area(part) - filling_ * static_cast<double>(size(part)); }

  void give(int part, int cp_rank);
  void take(int part);
  /// Cuts off the end of a part with about this excess that fits into the CP rank's free tokens,
  /// and gives it. Returns whether anything is left of the part.
  bool give_end(int part, double excess, int cp_rank);
  /// Gives some tokens of a part that several CP ranks share; it stays without an owner.
  void give_tokens(int part, Range tokens, int cp_rank);

  /// The `size` tokens of part `a` next to its neighbour `b`.
  Range border(int a, int b, std::int64_t size) const;
  double border_excess(int a, Range border) const;
  /// Moves a border of `a` to its neighbour.
  void shift(int a, int b, Range border);

  /// Largest area of a CP rank over the mean.
  double imbalance() const;
  /// Per CP rank: ascending, not touching.
  std::vector<std::vector<Range>> ranges() const;

 private:
  struct Links {
    int owner = -1;
    int before = -1;
    int after = -1;
  };
  struct CpRank {
    std::vector<int> parts;
    std::vector<AtomPart> cut;  ///< pieces of shared parts (give_tokens)
    std::int64_t free_tokens = 0;
    double missing = 0;  ///< area up to the share; below 0: beyond it
    double bias = 0;     ///< area
  };

  const AtomPart& of(int part) const { return parts_[static_cast<std::size_t>(part)]; }
  AtomPart& of(int part) { return parts_[static_cast<std::size_t>(part)]; }
  Links& links(int part) { return links_[static_cast<std::size_t>(part)]; }
  const CpRank& at(int cp_rank) const { return cp_ranks_[static_cast<std::size_t>(cp_rank)]; }
  CpRank& at(int cp_rank) { return cp_ranks_[static_cast<std::size_t>(cp_rank)]; }

  AtomAreas* atoms_;
  std::vector<AtomPart> parts_;
  std::vector<Links> links_;
  std::vector<CpRank> cp_ranks_;
  std::int64_t tokens_ = 0;
  double share_ = 0;
  double filling_ = 0;  ///< cells per token
};

}  // namespace longca
