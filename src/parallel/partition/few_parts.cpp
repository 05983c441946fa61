#include "parallel/partition/few_parts.h"

#include <algorithm>
#include <utility>

namespace longca {
namespace {

FewParts with(const PartPacking& packing, FewParts few, int part) {
  few.parts[static_cast<std::size_t>(few.count())] = part;
  few.tokens += packing.size(part);
  few.excess += packing.excess(part);
  return few;
}

std::vector<int> shortest_of(const PartPacking& packing, int cp_rank, const PartReach& reach) {
  std::vector<int> parts = packing.held(cp_rank);
  if (reach.only_atoms) {
    std::erase_if(parts, [&](int p) { return packing.before(p) >= 0 || packing.after(p) >= 0; });
  }
  std::sort(parts.begin(), parts.end(), [&](int a, int b) {
    return std::pair(packing.size(a), a) < std::pair(packing.size(b), b);
  });
  if (std::ssize(parts) > reach.parts) parts.resize(static_cast<std::size_t>(reach.parts));
  return parts;
}

}  // namespace

int FewParts::count() const {
  return static_cast<int>(std::find(parts.begin(), parts.end(), -1) - parts.begin());
}

bool FewParts::has(int part) const {
  return std::find(parts.begin(), parts.end(), part) != parts.end();
}

std::vector<FewParts> few_parts(const PartPacking& packing, int cp_rank, const PartReach& reach) {
  const std::vector<int> parts = shortest_of(packing, cp_rank, reach);
  std::vector<FewParts> all = {{}};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const FewParts one = with(packing, {}, parts[i]);
    all.push_back(one);
    for (std::size_t j = 0; j < i; ++j) {
      const FewParts two = with(packing, one, parts[j]);
      all.push_back(two);
      for (std::size_t k = 0; reach.triples && k < j; ++k) {
        all.push_back(with(packing, two, parts[k]));
      }
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const FewParts& a, const FewParts& b) { return a.tokens < b.tokens; });
  return all;
}

}  // namespace longca
