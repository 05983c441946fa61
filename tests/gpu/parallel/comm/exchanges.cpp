#include "gpu/parallel/comm/exchanges.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace longca::testing {
namespace {

using Random = std::mt19937_64;

std::int64_t between(Random& random, std::int64_t least, std::int64_t most) {
  return std::uniform_int_distribution<std::int64_t>(least, most)(random);
}

/// The shape of a message of about `size` bytes: one row, or many with gaps.
Edge random_shape(Random& random, std::int64_t size) {
  Edge edge;
  const bool strided = size >= 4 && between(random, 0, 2) > 0;
  if (!strided) {
    edge.row_bytes = edge.from_stride = edge.to_stride = size;
    return edge;
  }
  // Most rows are whole heads; some have lengths and gaps that nothing divides.
  const std::int64_t unit = size >= 1024 && between(random, 0, 3) > 0 ? 256 : 1;
  const std::int64_t max_rows = std::min<std::int64_t>(size / unit, 20000);
  edge.rows = std::max<std::int64_t>(1, between(random, 1, max_rows));
  edge.row_bytes = std::max(unit, size / edge.rows / unit * unit);
  const auto stride = [&] { return edge.row_bytes + unit * between(random, 0, 2); };
  edge.from_stride = stride();
  edge.to_stride = stride();
  return edge;
}

std::int64_t extent(std::int64_t rows, std::int64_t row_bytes, std::int64_t stride) {
  return (rows - 1) * stride + row_bytes;
}

class Drawer {
 public:
  Drawer(Random& random, int ranks, std::int64_t bytes)
      : random_(random), ranks_(ranks), bytes_(bytes), end_(static_cast<std::size_t>(ranks)) {}

  GlobalExchange draw() {
    GlobalExchange exchange;
    exchange.pattern = static_cast<Pattern>(between(random_, 0, 5));
    const bool sparse =
        exchange.pattern == Pattern::group_cast || exchange.pattern == Pattern::group_reduce;
    const bool alike =
        exchange.pattern == Pattern::all_gather || exchange.pattern == Pattern::all_to_all;
    const std::int64_t shift = between(random_, 1, std::max(1, ranks_ - 1));
    const Edge common = random_shape(random_, size());
    for (int from = 0; from < ranks_; ++from) {
      for (int to = 0; to < ranks_; ++to) {
        if (from == to || (sparse && between(random_, 0, 1) == 0)) continue;
        if (exchange.pattern == Pattern::send_receive && to != (from + shift) % ranks_) continue;
        const std::int64_t messages = sparse ? between(random_, 1, 3) : 1;
        Edge shape = alike ? common : random_shape(random_, size());
        for (std::int64_t i = 0; i < messages; ++i) {
          add(exchange, shape, from, to);
          // Every other one is like the one before it, as V is like K.
          if (i % 2 == 1) shape = random_shape(random_, size());
        }
      }
    }
    return exchange;
  }

 private:
  /// Mostly small, so that many fit.
  std::int64_t size() {
    const double most = between(random_, 0, 9) == 0 ? 26 : 18;
    return static_cast<std::int64_t>(
        std::exp2(std::uniform_real_distribution<double>(0, most)(random_)));
  }

  /// If there is still room.
  void add(GlobalExchange& exchange, Edge edge, int from, int to) {
    std::int64_t& end = end_[static_cast<std::size_t>(to)];
    const std::int64_t alignment = edge.row_bytes % 256 == 0 ? 256 : 1;
    edge.from = from;
    edge.to = to;
    edge.to_offset = (end + between(random_, 0, 3) + alignment - 1) / alignment * alignment;
    const std::int64_t landed = extent(edge.rows, edge.row_bytes, edge.to_stride);
    const std::int64_t left = bytes_ - extent(edge.rows, edge.row_bytes, edge.from_stride);
    if (edge.to_offset + landed > bytes_ || left < 0) return;
    edge.from_offset = between(random_, 0, left) / alignment * alignment;
    end = edge.to_offset + landed;
    exchange.edges.push_back(edge);
  }

  Random& random_;
  int ranks_;
  std::int64_t bytes_;
  std::vector<std::int64_t> end_;  ///< of what is taken of each rank's received buffer
};

}  // namespace

std::vector<GlobalExchange> random_exchanges(std::mt19937_64& random, int ranks, int count,
                                             std::int64_t bytes) {
  Drawer drawer(random, ranks, bytes);
  std::vector<GlobalExchange> exchanges;
  for (int i = 0; i < count; ++i) exchanges.push_back(drawer.draw());
  return exchanges;
}

TransferGroup group_of(const GlobalExchange& exchange, int rank, void* sent, void* received) {
  TransferGroup group;
  group.pattern = exchange.pattern;
  // Ranks decide each for itself.
  group.alone = (exchange.edges.size() + static_cast<std::size_t>(rank)) % 2 == 0;
  group.lands_early = (exchange.edges.size() + static_cast<std::size_t>(rank)) % 3 > 0;
  for (const Edge& edge : exchange.edges) {
    if (edge.from == rank) {
      group.sends.push_back({edge.to, static_cast<std::byte*>(sent) + edge.from_offset, edge.rows,
                             edge.row_bytes, edge.from_stride});
    }
    if (edge.to == rank) {
      group.receives.push_back({edge.from, static_cast<std::byte*>(received) + edge.to_offset,
                                edge.rows, edge.row_bytes, edge.to_stride});
    }
  }
  return group;
}

std::vector<unsigned char> expected_bytes(const std::vector<GlobalExchange>& exchanges, int rank,
                                          std::int64_t bytes, unsigned char poison) {
  std::vector<unsigned char> expected(static_cast<std::size_t>(bytes), poison);
  for (const GlobalExchange& exchange : exchanges) {
    for (const Edge& edge : exchange.edges) {
      if (edge.to != rank) continue;
      for (std::int64_t row = 0; row < edge.rows; ++row) {
        const std::int64_t from = edge.from_offset + row * edge.from_stride;
        const std::int64_t to = edge.to_offset + row * edge.to_stride;
        for (std::int64_t i = 0; i < edge.row_bytes; ++i) {
          expected[static_cast<std::size_t>(to + i)] = content(edge.from, from + i);
        }
      }
    }
  }
  return expected;
}

}  // namespace longca::testing
