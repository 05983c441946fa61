#include "parallel/plan/deal_cost.h"

#include <algorithm>

#include "mask/total_size.h"
#include "parallel/plan/rates.h"

namespace longca {
namespace {

constexpr double kHeadsQ = 64;
constexpr double kHeadsK = 8;
constexpr double kHeadDim = 128;
constexpr double kElementBytes = 2;
constexpr double kSecondsPerCell = 10 * kHeadsQ * kHeadDim / rates::kBackwardTileFlopsPerSecond;
/// A key and its value; their gradients travel as float32 sums.
constexpr double kKeyBytes = 2 * kHeadsK * kHeadDim * kElementBytes;
constexpr double kSumBytes = 2 * kHeadsK * kHeadDim * 4;
/// A float32 sum is read, and its rounded half written.
constexpr double kSecondsPerRoundedKey = 1.5 * kSumBytes / rates::kMemoryBytesPerSecond;
/// Two results are read, and the merged one is written.
constexpr double kSecondsPerMergedRow =
    3 * kHeadsQ * kHeadDim * kElementBytes / rates::kMemoryBytesPerSecond;

/// What counts of the longest exchange, hidden or not, in a node and where links between nodes,
/// that are slower, take part.
constexpr double kHiddenShare = 0.05;
constexpr double kHiddenShareOfSlow = 1;
constexpr std::ptrdiff_t kRanksOfNode = 8;

std::vector<Range> rows_of(const std::vector<Band>& bands) {
  std::vector<Range> rows;
  rows.reserve(bands.size());
  for (const Band& band : bands) rows.push_back(band.rows());
  return rows;
}

/// The first of ascending ranges that ends behind a token.
template <typename Ranges>
auto first_behind(const Ranges& ranges, std::int64_t token) {
  return std::partition_point(ranges.begin(), ranges.end(),
                              [&](const auto& range) { return range.end <= token; });
}

/// Appends what of the keys `seen` by `rows` is not in `own`, and returns the cells of what is.
std::int64_t append_rest(const Band& band, Range rows, Range seen, const std::vector<Range>& own,
                         std::vector<Range>& rest) {
  auto it = first_behind(own, seen.begin);
  const bool is_own = it != own.end() && it->begin <= seen.begin && seen.end <= it->end;
  if (is_own) return band.area();
  std::int64_t cells = 0;
  for (; it != own.end() && it->begin < seen.end; ++it) {
    if (it->begin > seen.begin) rest.push_back({seen.begin, it->begin});
    cells += band.clipped(rows, *it).area();
    seen.begin = it->end;
  }
  if (!seen.empty()) rest.push_back(seen);
  return cells;
}

/// Of a position's rows.
struct Piece {
  Band band;
  std::int64_t shift = 0;  ///< from a row's local number to its token
};

/// The cells of a piece in local rows.
std::int64_t cells_in(const Piece& piece, const std::vector<Range>& local) {
  const Range rows = piece.band.rows();
  const Range mine = {rows.begin - piece.shift, rows.end - piece.shift};
  std::int64_t cells = 0;
  for (auto it = first_behind(local, mine.begin); it != local.end() && it->begin < mine.end; ++it) {
    const Range both = intersect(*it, mine);
    cells +=
        piece.band.clipped({both.begin + piece.shift, both.end + piece.shift}, piece.band.k).area();
  }
  return cells;
}

struct Owned {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::size_t position = 0;
};

std::vector<Owned> owners_of(const std::vector<std::vector<Range>>& dealt) {
  std::vector<Owned> owners;
  for (std::size_t p = 0; p < dealt.size(); ++p) {
    for (const Range range : dealt[p]) owners.push_back({range.begin, range.end, p});
  }
  std::sort(owners.begin(), owners.end(),
            [](const Owned& a, const Owned& b) { return a.begin < b.begin; });
  return owners;
}

double transfer_of(std::int64_t keys, double bytes, std::int64_t messages) {
  if (messages == 0) return 0;
  return static_cast<double>(keys) * bytes / rates::kLinkBytesPerSecond +
         rates::kSecondsPerExchange + static_cast<double>(messages) * rates::kSecondsPerMessage;
}

}  // namespace

double PositionCost::seconds() const {
  if (messages == 0) return cells * kSecondsPerCell + rates::kSecondsPerBackwardCall;
  const double rounding = kSecondsPerRoundedKey * static_cast<double>(tokens);
  return std::min(by_rows(), by_keys()) + rounding;
}

double PositionCost::exchanges() const {
  return fetch() + reduce();
}

double PositionCost::overhead() const {
  return seconds() - cells * kSecondsPerCell - rates::kSecondsPerBackwardCall;
}

double PositionCost::fetch() const {
  return transfer_of(std::max(received, sent), kKeyBytes, messages);
}

double PositionCost::reduce() const {
  return transfer_of(std::max(received, sent), kSumBytes, messages);
}

/// Rows that see keys of others are computed once, beside the exchanges the others, in one call or
/// two.
double PositionCost::by_rows() const {
  const double joint = joint_cells * kSecondsPerCell + calls * rates::kSecondsPerBackwardCall;
  const double alone = (cells - joint_cells) * kSecondsPerCell;
  const double call = rates::kSecondsPerBackwardCall;
  if (calls == 0) return std::max(alone + call, exchanges());
  if (rows == tokens) return joint + exchanges();
  const double early = std::clamp(fetch() - call, 0.0, alone);
  const double apart = call + early + joint + std::max(call + alone - early, reduce());
  return std::min(fetch() + joint + std::max(call + alone, reduce()), apart);
}

/// Half of the heads of the own keys first, the others last, and results merged.
double PositionCost::by_keys() const {
  const double half = (cells - foreign_cells) * kSecondsPerCell / 2 + rates::kSecondsPerHalvedCall;
  return std::max(half, fetch()) + foreign_cells * kSecondsPerCell +
         calls * rates::kSecondsPerBackwardCall + std::max(half, reduce()) +
         kSecondsPerMergedRow * static_cast<double>(rows);
}

double price_of(const std::vector<PositionCost>& costs) {
  double end = 0;
  double exchanges = 0;
  for (const PositionCost& cost : costs) {
    end = std::max(end, cost.seconds());
    exchanges = std::max(exchanges, cost.exchanges());
  }
  const bool has_slow_links = std::ssize(costs) > kRanksOfNode;
  return end + (has_slow_links ? kHiddenShareOfSlow : kHiddenShare) * exchanges;
}

double seconds_per_cell() {
  return kSecondsPerCell;
}

DealCost::DealCost(const Mask& mask) {
  for (const Slice& slice : mask.slices()) bands_.push_back(Band::of(slice));
  rows_ = RangeIndex(rows_of(bands_));
}

/// Counts a position's rows and cells; returns the foreign keys.
std::vector<Range> DealCost::count_rows(const std::vector<Range>& own, PositionCost& cost) const {
  std::vector<Range> keys;
  std::vector<Range> joint;  // local rows
  std::vector<Piece> alone;  // that see own keys only, with these bands
  std::int64_t cells = 0;
  std::int64_t joint_cells = 0;
  std::int64_t own_cells = 0;
  std::int64_t shift = 0;  // from a token's number to that of its row
  for (const Range range : own) {
    shift += range.begin;
    rows_.for_each_overlapping(range, [&](std::uint32_t i) {
      const Band band = bands_[i].clipped(range, bands_[i].k);
      const Range rows = band.rows();
      if (rows.empty()) return;
      const Range seen = {band.keys_of(rows.begin).begin, band.keys_of(rows.end - 1).end};
      const std::size_t before = keys.size();
      const std::int64_t area = band.area();
      cells += area;
      own_cells += append_rest(band, rows, seen, own, keys);
      if (keys.size() == before) {
        alone.push_back({band, shift});
      } else {
        joint_cells += area;
        joint.push_back({rows.begin - shift, rows.end - shift});
      }
    });
    shift -= range.end;
  }
  join_ranges(keys);
  join_ranges(joint);
  for (const Piece& piece : alone) joint_cells += cells_in(piece, joint);
  cost.tokens = total_size(own);
  cost.rows = total_size(joint);
  cost.calls = static_cast<int>(joint.size());
  const double more = rates::kKeysPerRow * static_cast<double>(cost.rows);
  cost.cells = static_cast<double>(cells) + rates::kKeysPerRow * static_cast<double>(cost.tokens);
  cost.joint_cells = static_cast<double>(joint_cells) + more;
  cost.foreign_cells = static_cast<double>(cells - own_cells) + more;
  return keys;
}

std::vector<PositionCost> DealCost::of(const std::vector<std::vector<Range>>& dealt) const {
  const std::vector<Owned> owners = owners_of(dealt);
  std::vector<PositionCost> costs(dealt.size());
  std::vector<std::int64_t> sends(dealt.size(), 0);
  for (std::size_t p = 0; p < dealt.size(); ++p) {
    for (const Range keys : count_rows(dealt[p], costs[p])) {
      for (auto it = first_behind(owners, keys.begin); it != owners.end() && it->begin < keys.end;
           ++it) {
        const std::int64_t size = intersect({it->begin, it->end}, keys).size();
        costs[p].received += size;
        costs[p].messages += 2;  // K and V
        costs[it->position].sent += size;
        sends[it->position] += 2;
      }
    }
  }
  for (std::size_t p = 0; p < dealt.size(); ++p) {
    costs[p].messages = std::max(costs[p].messages, sends[p]);
  }
  return costs;
}

}  // namespace longca
