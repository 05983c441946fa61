#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "mask/generators.h"
#include "parallel/schemes/scheme.h"
#include "support/golden_digests.h"
#include "support/mask_digest.h"
#include "support/plan_digest.h"

namespace longca {
namespace {

using testing::Digest;
using testing::GoldenCase;

/// Numbers of ranks, by the column of the file.
const std::vector<std::vector<int>> kRankCounts = {{1, 2}, {3}, {4}, {8}, {16, 64}};
constexpr bool kBackward = true;

/// What a problem has besides its mask, shard and ranks.
struct Shape {
  int heads_q, heads_k, head_dim;
  DType dtype;
  DeviceKind device;
  bool backward;
  int ranks_per_node;
  int factor;
  std::int64_t min_gap;
};
constexpr Shape kShapes[] = {
    {64, 8, 128, DType::bfloat16, DeviceKind::cuda, kBackward, 8, 0, 0},
    {8, 8, 64, DType::float32, DeviceKind::cpu, kBackward, 2, 0, 0},
    {64, 64, 128, DType::bfloat16, DeviceKind::cuda, !kBackward, 4, 2, 0},
};
constexpr Shape kMoreShapes[] = {
    {64, 64, 128, DType::bfloat16, DeviceKind::cuda, kBackward, 8, 0, 0},
    {32, 8, 128, DType::bfloat16, DeviceKind::cuda, kBackward, 2, 0, 64},
    {64, 8, 128, DType::bfloat16, DeviceKind::cpu, !kBackward, 4, 4, 0},
};

MaskSpec spec_of(const std::string& mask, std::int64_t tokens, int heads_q, int heads_k) {
  MaskSpec spec;
  spec.name = mask;
  spec.tokens = tokens;
  spec.heads_q = heads_q;
  spec.heads_k = heads_k;
  return spec;
}

/// Masks that many problems share, drawn once.
class Masks {
 public:
  const GeneratedMask& operator[](const MaskSpec& spec) {
    const auto key = fmt::format("{} {} {} {} {} {}", spec.name, spec.tokens, spec.heads_q,
                                 spec.heads_k, spec.seed, spec.lengths);
    const auto found = masks_.find(key);
    return found != masks_.end() ? found->second
                                 : masks_.emplace(key, generate_mask(spec)).first->second;
  }

 private:
  std::map<std::string, GeneratedMask> masks_;
};

ParallelProblem problem_of(const Shape& shape, const GeneratedMask& generated, ShardKind shard,
                           int ranks) {
  Problem problem;
  problem.tokens_q = problem.tokens_k = generated.mask.q_tokens();
  problem.heads_q = shape.heads_q;
  problem.heads_k = shape.heads_k;
  problem.head_dim = shape.head_dim;
  problem.dtype = shape.dtype;
  problem.device = shape.device;
  problem.backward = shape.backward;
  return {problem, generated.mask, generated.lengths, ranks, shape.ranks_per_node,
          shard,   shape.factor,   shape.min_gap};
}

/// Adds the plans of the first two ranks, one in the middle and the last. Whether there is one.
bool add_plans(Digest& out, const Scheme& scheme, const ParallelProblem& problem) {
  if (!scheme.supports(problem).ok()) return false;
  const int last = problem.ranks - 1;
  for (const int rank : std::set<int>{0, std::min(1, last), problem.ranks / 2, last}) {
    digest(out, scheme.plan(problem, rank));
  }
  return true;
}

/// The shard kinds by the names that users type.
std::vector<ShardKind> shard_kinds() {
  std::vector<ShardKind> kinds;
  for (const std::string& name : shard_kind_names()) kinds.push_back(parse_shard_kind(name));
  return kinds;
}

class GoldenPlans : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenPlans, AreThoseOfTheFile) {
  const Scheme& scheme = find_scheme(GetParam());
  Masks masks;
  std::vector<GoldenCase> cases;
  for (const MaskTraits& traits : mask_table()) {
    for (const ShardKind shard : shard_kinds()) {
      GoldenCase golden{fmt::format("{} {}", traits.name, to_string(shard)), {}};
      for (const std::vector<int>& counts : kRankCounts) {
        Digest out;
        bool any = false;
        for (const int ranks : counts) {
          const std::int64_t tokens = std::clamp<std::int64_t>(ranks * 1024, 4096, 16384);
          for (const Shape& shape : kShapes) {
            const auto& mask = masks[spec_of(traits.name, tokens, shape.heads_q, shape.heads_k)];
            any |= add_plans(out, scheme, problem_of(shape, mask, shard, ranks));
          }
        }
        golden.digests.push_back(any ? out.value() : 0);
      }
      cases.push_back(std::move(golden));
    }
  }
  std::vector<std::string> columns;
  for (const std::vector<int>& counts : kRankCounts) {
    columns.push_back(fmt::format("{}_ranks", fmt::join(counts, "+")));
  }
  testing::expect_golden_digests(GetParam() + ".txt", columns, cases);
}

TEST_P(GoldenPlans, OfManyProblemsAreThoseOfTheFile) {
  if (!testing::golden_full()) GTEST_SKIP() << "takes minutes; LONGCA_GOLDEN_FULL=1 asks for it";
  const Scheme& scheme = find_scheme(GetParam());
  Masks masks;
  std::vector<GoldenCase> cases;
  for (const MaskTraits& traits : mask_table()) {
    GoldenCase golden{traits.name, {}};
    for (const ShardKind shard : shard_kinds()) {
      Digest out;
      for (const int ranks : {2, 3, 4, 6, 8, 16, 64, 256}) {
        for (const std::int64_t rank_tokens : {3000, 8192}) {
          const std::int64_t most = traits.uses_blocks ? 8192 : 65536;
          const std::int64_t tokens = std::min(ranks * rank_tokens, most);
          for (const std::span<const Shape> shapes : {std::span(kShapes), std::span(kMoreShapes)}) {
            for (const Shape& shape : shapes) {
              const auto& mask = masks[spec_of(traits.name, tokens, shape.heads_q, shape.heads_k)];
              add_plans(out, scheme, problem_of(shape, mask, shard, ranks));
            }
          }
        }
      }
      golden.digests.push_back(out.value());
    }
    cases.push_back(std::move(golden));
  }
  testing::expect_golden_digests("full/" + GetParam() + ".txt", shard_kind_names(), cases);
}

std::vector<std::string> scheme_names() {
  std::vector<std::string> names;
  for (const auto& scheme : schemes()) names.push_back(scheme->name());
  return names;
}
INSTANTIATE_TEST_SUITE_P(Schemes, GoldenPlans, ::testing::ValuesIn(scheme_names()),
                         [](const auto& scheme) { return scheme.param; });

struct Documents {
  const char* lengths;
  std::uint64_t seed;
};
constexpr Documents kDocuments[] = {{"prolong64k", 42},  {"prolong64k", 7},       {"pile", 42},
                                    {"chatqa_long", 42}, {"prolong64k+long", 42}, {"pile+long", 7}};
/// Numbers of CP ranks and the tokens that are assigned to them, by the column of the file.
struct CpRanks {
  std::vector<int> counts;
  std::int64_t tokens;
};
const std::vector<CpRanks> kCpRanks = {
    {{2, 3, 4}, 32768}, {{8, 16}, 65536}, {{64, 256}, 131072}, {{1024}, 262144}};

TEST(GoldenSharding, RangesAreThoseOfTheFile) {
  Masks masks;
  std::vector<GoldenCase> cases;
  const auto add_case = [&](const MaskTraits& traits, const Documents& documents, ShardKind shard) {
    GoldenCase golden{fmt::format("{} {} seed_{} {}", traits.name, documents.lengths,
                                  documents.seed, to_string(shard)),
                      {}};
    for (const auto& [counts, tokens] : kCpRanks) {
      if (counts.front() > 256 && documents.seed != 42) {  // takes longest
        golden.digests.push_back(0);
        continue;
      }
      MaskSpec spec = spec_of(traits.name, traits.uses_blocks ? tokens / 16 : tokens, 8, 8);
      spec.lengths = documents.lengths;
      spec.seed = documents.seed;
      const GeneratedMask& generated = masks[spec];
      Digest out;
      for (const int count : counts) {
        for (const PartitionAim aim : {PartitionAim::equal_area, PartitionAim::equal_time}) {
          if (aim != PartitionAim::equal_area && shard != ShardKind::document_balanced) continue;
          const Sharding sharding(shard, generated.mask, generated.lengths, count, 0, aim);
          for (int i = 0; i < count; ++i) out.add(sharding.ranges(i));
        }
      }
      golden.digests.push_back(out.value());
    }
    cases.push_back(std::move(golden));
  };
  for (const MaskTraits& traits : mask_table()) {
    for (const Documents& documents : kDocuments) {
      if (!traits.uses_lengths && &documents != &kDocuments[0]) continue;
      for (const ShardKind shard : shard_kinds()) {
        const bool by_mask = shard != ShardKind::contiguous && shard != ShardKind::zigzag;
        if (by_mask || &documents == &kDocuments[0]) add_case(traits, documents, shard);
      }
    }
  }
  std::vector<std::string> columns;
  for (const CpRanks& cp_ranks : kCpRanks) {
    columns.push_back(fmt::format("{}_positions", fmt::join(cp_ranks.counts, "+")));
  }
  testing::expect_golden_digests("sharding.txt", columns, cases);
}

}  // namespace
}  // namespace longca
