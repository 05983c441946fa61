#include "parallel/executor/op_regions.h"

#include <algorithm>

namespace longca {
namespace {

OpRegions touched(const Exchange& exchange) {
  OpRegions regions;
  for (const Message& m : exchange.sends) regions.read.push_back(m.region);
  for (const Message& m : exchange.receives) regions.written.push_back(m.region);
  return regions;
}

OpRegions touched(const Copy& op) {
  return {{op.from}, {op.to}};
}

OpRegions touched(const Attend& op) {
  OpRegions regions{{op.q, op.k, op.v}, {op.o, op.lse}};
  if (!op.first) regions.read.insert(regions.read.end(), {op.o, op.lse});
  return regions;
}

OpRegions touched(const AttendBackward& op) {
  OpRegions regions{{op.dout, op.q, op.k, op.v, op.o, op.lse}, {op.dq, op.dk, op.dv}};
  if (!op.first_dq) regions.read.push_back(op.dq);
  if (!op.first_dkv) regions.read.insert(regions.read.end(), {op.dk, op.dv});
  return regions;
}

OpRegions touched(const Add& op) {
  return {{op.from, op.into}, {op.into}};
}

OpRegions touched(const Convert& op) {
  return {{op.from}, {op.to}};
}

/// Parts may be added up in one of them.
OpRegions touched(const Total& op) {
  OpRegions regions{{}, {op.to}};
  for (const Total::Part& part : op.parts) {
    regions.read.push_back(part.from);
    regions.written.push_back(part.from);
  }
  return regions;
}

OpRegions touched(const Clear& op) {
  return {{}, {op.region}};
}

bool any_overlap(const std::vector<Region>& a, const std::vector<Region>& b) {
  return std::ranges::any_of(a, [&](const Region& x) {
    return std::ranges::any_of(b, [&](const Region& y) { return overlap(x, y); });
  });
}

bool overlap(const Range& a, const Range& b) {
  return std::max(a.begin, b.begin) < std::min(a.end, b.end);
}

}  // namespace

OpRegions regions_of(const Op& op) {
  return std::visit([](const auto& what) { return touched(what); }, op.what);
}

bool overlap(const Region& a, const Region& b) {
  return a.buffer == b.buffer && overlap(a.tokens, b.tokens) && overlap(a.heads, b.heads);
}

bool conflict(const OpRegions& a, const OpRegions& b) {
  return any_overlap(a.written, b.read) || any_overlap(a.written, b.written) ||
         any_overlap(a.read, b.written);
}

}  // namespace longca
