#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "attention/kernels/slice/planner/pack.h"
#include "mask/generators.h"
#include "support/golden_digests.h"
#include "support/list_digest.h"

namespace longca::slice {
namespace {

using testing::Digest;
using testing::GoldenCase;

/// The SMs of an H200 or H100 SXM.
constexpr int kSms = 132;

struct Heads {
  int q, k;
};
constexpr Heads kHeads[] = {{64, 8}, {64, 64}, {32, 8}};
constexpr bool kDeterministic[] = {false, true};

Mask mask_of(const std::string& name, std::int64_t tokens, Heads heads) {
  MaskSpec spec;
  spec.name = name;
  spec.tokens = tokens;
  spec.heads_q = heads.q;
  spec.heads_k = heads.k;
  return generate_mask(spec).mask;
}

/// What a rank of `ranks` computes: its rows over all keys and, if `near`, the keys before its last
/// row only. The rows are one range, or two as zigzag has them.
Mask part_of(const Mask& mask, int ranks, int rank, bool zigzag, bool near) {
  const auto chunk = [&](int index, int chunks) {
    return Range{mask.q_tokens() * index / chunks, mask.q_tokens() * (index + 1) / chunks};
  };
  std::vector<Range> rows;
  if (zigzag) {
    rows = {chunk(rank, 2 * ranks), chunk(2 * ranks - 1 - rank, 2 * ranks)};
    if (rows[0].end == rows[1].begin) rows = {{rows[0].begin, rows[1].end}};
  } else {
    rows = {chunk(rank, ranks)};
  }
  const Range keys = {0, near ? rows.back().end : mask.k_tokens()};
  return mask.sub_mask(rows, std::span(&keys, 1));
}

/// Of the pass that `slice` plans for these heads: tiles as it chooses them.
void add_lists(Digest& out, const Mask& mask, Heads heads, bool deterministic) {
  const int group = std::gcd(heads.q / heads.k, heads.q / mask.heads());
  const Tiling tiling = choose_tiling(mask, group, 128, true);
  out.add(tiling.pack);
  if (!deterministic) digest(out, make_tile_lists(mask, tiling));
  const int backward_pack = choose_backward_pack(mask, group);
  out.add(backward_pack);
  digest(out,
         make_transposed_lists(
             mask, backward_pack,
             {.heads_q = heads.q, .heads_k = heads.k, .ctas = kSms, .ordered = deterministic}));
}

std::vector<std::string> columns() {
  std::vector<std::string> names;
  for (const Heads heads : kHeads) {
    for (const bool deterministic : kDeterministic) {
      names.push_back(
          fmt::format("{}:{}{}", heads.q, heads.k, deterministic ? "_deterministic" : ""));
    }
  }
  return names;
}

/// The digests of one line: masks(heads) gives what each column adds.
template <typename MasksOf>
std::vector<std::uint64_t> digests_of(const MasksOf& masks) {
  std::vector<std::uint64_t> digests;
  for (const Heads heads : kHeads) {
    const std::vector<Mask> of_heads = masks(heads);
    for (const bool deterministic : kDeterministic) {
      Digest out;
      for (const Mask& mask : of_heads) add_lists(out, mask, heads, deterministic);
      digests.push_back(out.value());
    }
  }
  return digests;
}

TEST(GoldenLists, OfWholeMasksAreThoseOfTheFile) {
  std::vector<GoldenCase> cases;
  for (const MaskTraits& traits : mask_table()) {
    for (const std::int64_t tokens : {1, 65, 1000, 4096, 8192, 32768}) {
      if (traits.uses_blocks && tokens > 8192) continue;
      cases.push_back({fmt::format("{} {}", traits.name, tokens), digests_of([&](Heads heads) {
                         return std::vector{mask_of(traits.name, tokens, heads)};
                       })});
    }
  }
  testing::expect_golden_digests("lists_of_masks.txt", columns(), cases);
}

TEST(GoldenLists, OfRanksAreThoseOfTheFile) {
  std::vector<GoldenCase> cases;
  for (const MaskTraits& traits : mask_table()) {
    for (const int ranks : {2, 3, 8}) {
      const auto masks = [&](Heads heads) {
        const Mask whole = mask_of(traits.name, traits.uses_blocks ? 4096 : 16384, heads);
        std::vector<Mask> parts;
        for (const int rank : {0, ranks - 1}) {
          for (const bool zigzag : {false, true}) {
            for (const bool near : {false, true}) {
              parts.push_back(part_of(whole, ranks, rank, zigzag, near));
            }
          }
        }
        return parts;
      };
      cases.push_back({fmt::format("{} {}_ranks", traits.name, ranks), digests_of(masks)});
    }
  }
  testing::expect_golden_digests("lists_of_ranks.txt", columns(), cases);
}

TEST(GoldenLists, OfManyPartsAreThoseOfTheFile) {
  if (!testing::golden_full()) GTEST_SKIP() << "takes minutes; LONGCA_GOLDEN_FULL=1 asks for it";
  std::vector<GoldenCase> cases;
  for (const MaskTraits& traits : mask_table()) {
    for (const std::int64_t tokens : {12288, 32768, 131072, 524288}) {
      if (traits.uses_blocks && tokens > 32768) continue;
      const auto masks = [&](Heads heads) {
        const Mask whole = mask_of(traits.name, tokens, heads);
        std::vector<Mask> parts = {whole};
        for (const int ranks : {2, 4, 8, 64}) {
          for (const int rank : {0, 1, ranks / 2, ranks - 1}) {
            for (const bool zigzag : {false, true}) {
              parts.push_back(part_of(whole, ranks, rank, zigzag, true));
            }
          }
        }
        return parts;
      };
      cases.push_back({fmt::format("{} {}", traits.name, tokens), digests_of(masks)});
    }
  }
  testing::expect_golden_digests("full/lists.txt", columns(), cases);
}

}  // namespace
}  // namespace longca::slice
