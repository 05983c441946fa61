#include "parallel/plan/part_packing.h"

#include <algorithm>

#include "mask/band.h"

namespace longca {

PartPacking::PartPacking(AtomAreas& atoms, int positions)
    : atoms_(&atoms),
      parts_(atoms.atoms()),
      links_(parts_.size()),
      positions_(static_cast<std::size_t>(positions)) {
  for (const AtomPart& part : parts_) {
    tokens_ += part.tokens.size();
    share_ += part.area / positions;
  }
  for (int p = 0; p < positions; ++p) {
    at(p).room = tokens_ / positions + (p < tokens_ % positions ? 1 : 0);
    at(p).missing = share_;
  }
}

void PartPacking::give(int part, int position) {
  at(position).parts.push_back(part);
  at(position).room -= size(part);
  at(position).missing -= area(part);
  links(part).owner = position;
}

void PartPacking::take(int part) {
  Position& position = at(owner(part));
  position.parts.erase(std::find(position.parts.begin(), position.parts.end(), part));
  position.room += size(part);
  position.missing += area(part);
  links(part).owner = -1;
}

bool PartPacking::give_end(int part, double excess, int position) {
  const AtomPart end = atoms_->end_of(of(part), excess, filling_, room(position));
  if (end.tokens.size() == size(part)) {
    give(part, position);
    return false;
  }
  of(part).tokens.end = end.tokens.begin;
  of(part).area -= end.area;
  const int added = parts();
  parts_.push_back(end);
  links_.push_back({-1, part, after(part)});
  if (after(part) >= 0) links(after(part)).before = added;
  links(part).after = added;
  give(added, position);
  return true;
}

void PartPacking::give_tokens(int part, Range tokens, int position) {
  const double area = atoms_->area(tokens);
  at(position).cut.push_back({tokens, area, of(part).atom});
  at(position).room -= tokens.size();
  at(position).missing -= area;
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
  double least = 0;
  for (const Position& position : positions_) least = std::min(least, position.missing);
  return share_ > 0 ? 1 - least / share_ : 1.0;
}

std::vector<std::vector<Range>> PartPacking::ranges() const {
  std::vector<std::vector<Range>> dealt;
  for (const Position& position : positions_) {
    std::vector<Range>& ranges = dealt.emplace_back();
    for (const int part : position.parts) ranges.push_back(of(part).tokens);
    for (const AtomPart& part : position.cut) ranges.push_back(part.tokens);
    join_ranges(ranges);
  }
  return dealt;
}

}  // namespace longca
