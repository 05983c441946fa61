#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "parallel/transport/communicator.h"

namespace longca::testing {

/// A message of an exchange between all ranks, with places as offsets into the buffer that every
/// rank sends from and the one that it receives into.
struct Edge {
  int from = 0;
  int to = 0;
  std::int64_t rows = 1;
  std::int64_t row_bytes = 0;
  std::int64_t from_offset = 0;
  std::int64_t from_stride = 0;
  std::int64_t to_offset = 0;
  std::int64_t to_stride = 0;
};

/// What all ranks do at once; the same on every rank.
struct GlobalExchange {
  Pattern pattern = Pattern::send_receive;
  std::vector<Edge> edges;
};

/// Exchanges of all patterns with messages of 1 byte to 64 MiB, contiguous and strided, of any
/// alignment. None of them ends in a place where another does, all inside `bytes`.
std::vector<GlobalExchange> random_exchanges(std::mt19937_64& random, int ranks, int count,
                                             std::int64_t bytes);

/// One rank's part.
TransferGroup group_of(const GlobalExchange& exchange, int rank, void* sent, void* received);

/// Byte `i` of what `rank` sends from.
inline unsigned char content(int rank, std::int64_t i) {
  const auto x = (static_cast<std::uint64_t>(i) / 8 + 1) * 0x9e3779b97f4a7c15U +
                 static_cast<std::uint64_t>(rank) * 0xc2b2ae3d27d4eb4fU;
  return static_cast<unsigned char>((x ^ (x >> 29)) >> (8 * (static_cast<std::uint64_t>(i) % 8)));
}

/// What lies in a rank's received buffer in the end, if all bytes were `poison` before.
std::vector<unsigned char> expected_bytes(const std::vector<GlobalExchange>& exchanges, int rank,
                                          std::int64_t bytes, unsigned char poison);

}  // namespace longca::testing
