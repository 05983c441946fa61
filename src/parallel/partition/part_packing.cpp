#include "parallel/partition/part_packing.h"

#include <algorithm>

#include "mask/mask_slice.h"

namespace longca {

PartPacking::PartPacking(AtomAreas& atoms, int cp_ranks)
    : atoms_(&atoms),
      parts_(atoms.atoms()),
      links_(parts_.size()),
      cp_ranks_(static_cast<std::size_t>(cp_ranks)) {
  for (const AtomPart& part : parts_) {
    tokens_ += part.tokens.size();
    share_ += part.area / cp_ranks;
  }
  for (int p = 0; p < cp_ranks; ++p) {
    at(p).free_tokens = tokens_ / cp_ranks + (p < tokens_ % cp_ranks ? 1 : 0);
    at(p).missing = share_;
  }
}

void PartPacking::give(int part, int cp_rank) {
  at(cp_rank).parts.push_back(part);
  at(cp_rank).free_tokens -= size(part);
  at(cp_rank).missing -= area(part);
  links(part).owner = cp_rank;
}

void PartPacking::take(int part) {
  CpRank& cp_rank = at(owner(part));
  cp_rank.parts.erase(std::find(cp_rank.parts.begin(), cp_rank.parts.end(), part));
  cp_rank.free_tokens += size(part);
  cp_rank.missing += area(part);
  links(part).owner = -1;
}

bool PartPacking::give_end(int part, double excess, int cp_rank) {
  const AtomPart end = atoms_->end_of(of(part), excess, filling_, free_tokens(cp_rank));
  if (end.tokens.size() == size(part)) {
    give(part, cp_rank);
    return false;
  }
  of(part).tokens.end = end.tokens.begin;
  of(part).area -= end.area;
  const int added = parts();
  parts_.push_back(end);
  links_.push_back({-1, part, after(part)});
  if (after(part) >= 0) links(after(part)).before = added;
  links(part).after = added;
  give(added, cp_rank);
  return true;
}

void PartPacking::give_tokens(int part, Range tokens, int cp_rank) {
  const double area = atoms_->area(tokens);
  at(cp_rank).cut.push_back({tokens, area, of(part).atom});
  at(cp_rank).free_tokens -= tokens.size();
  at(cp_rank).missing -= area;
}

Range PartPacking::border(int a, int b, std::int64_t size) const {
  const Range tokens = of(a).tokens;
  return b == after(a) ? Range{tokens.end - size, tokens.end}
                       : Range{tokens.begin, tokens.begin + size};
}

double PartPacking::border_excess(int a, Range border) const {
  return atoms_->about_area(of(a).atom, border) - filling_ * static_cast<double>(border.size());
}

void PartPacking::shift(int a, int b, Range border) {
  const int from = owner(a);
  const int to = owner(b);
  take(a);
  take(b);
  const double moved = atoms_->area(border);
  of(a).area -= moved;
  of(b).area += moved;
  if (b == after(a)) {
    of(a).tokens.end = of(b).tokens.begin = border.begin;
  } else {
    of(a).tokens.begin = of(b).tokens.end = border.end;
  }
  give(a, from);
  give(b, to);
}

double PartPacking::imbalance() const {
  double min_missing = 0;
  for (const CpRank& cp_rank : cp_ranks_) min_missing = std::min(min_missing, cp_rank.missing);
  return share_ > 0 ? 1 - min_missing / share_ : 1.0;
}

std::vector<std::vector<Range>> PartPacking::ranges() const {
  std::vector<std::vector<Range>> assigned;
  for (const CpRank& cp_rank : cp_ranks_) {
    std::vector<Range>& ranges = assigned.emplace_back();
    for (const int part : cp_rank.parts) ranges.push_back(of(part).tokens);
    for (const AtomPart& part : cp_rank.cut) ranges.push_back(part.tokens);
    join_ranges(ranges);
  }
  return assigned;
}

}  // namespace longca
