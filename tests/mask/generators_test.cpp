#include "mask/generators.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

#include "core/python_random.h"
#include "mask/lengths.h"
#include "mask/oracle.h"

namespace longca {
namespace {

using oracle::Dense;

MaskSpec small_spec(const std::string& name) {
  MaskSpec spec;
  spec.name = name;
  spec.tokens =
      *rc::gen::weightedOneOf<std::int64_t>({{1, rc::gen::element<std::int64_t>(0, 1, 2, 5, 6, 89)},
                                             {3, rc::gen::inRange<std::int64_t>(1, 97)}});
  const auto names = length_distribution_names();
  spec.lengths = *rc::gen::elementOf(std::vector<std::string>(names.begin(), names.end()));
  spec.seed = *rc::gen::arbitrary<std::uint64_t>();
  spec.window = *rc::gen::element<std::optional<std::int64_t>>(std::nullopt, 0, 1, 7, 30, 200);
  spec.block_tokens = *rc::gen::element<std::optional<std::int64_t>>(std::nullopt, 1, 2, 5, 16);
  spec.block = *rc::gen::inRange<std::int64_t>(1, 40);
  spec.density = *rc::gen::inRange(1, 11) / 10.0;
  spec.heads_k = *rc::gen::inRange(1, 4);
  spec.heads_q = spec.heads_k * *rc::gen::inRange(1, 3);
  spec.block_heads = *rc::gen::element<std::string>("kv", "query");
  return spec;
}

/// Where every token's document begins and ends.
struct Documents {
  std::vector<std::int64_t> begin;
  std::vector<std::int64_t> end;

  explicit Documents(const std::vector<std::int64_t>& lengths) {
    std::int64_t at = 0;
    for (const std::int64_t length : lengths) {
      for (std::int64_t i = 0; i < length; ++i) {
        begin.push_back(at);
        end.push_back(at + length);
      }
      at += length;
    }
  }
  std::int64_t begin_of(std::int64_t token) const { return begin[static_cast<std::size_t>(token)]; }
  std::int64_t end_of(std::int64_t token) const { return end[static_cast<std::size_t>(token)]; }
  bool together(std::int64_t a, std::int64_t b) const { return begin_of(a) == begin_of(b); }
};

using Sentence = std::function<bool(std::int64_t q, std::int64_t k)>;

void check(const MaskSpec& spec, const GeneratedMask& generated, const Sentence& allowed) {
  RC_ASSERT(generated.mask.blocks() == nullptr);
  RC_ASSERT(oracle::dense_of(generated.mask, 0) == Dense(spec.tokens, spec.tokens, allowed));
}

/// Documents of a mask that draws its lengths first; they are those of `lengths --seed`.
Documents documents_of(const MaskSpec& spec, const GeneratedMask& generated, PythonRandom& random) {
  RC_ASSERT(generated.lengths == sample_lengths(spec.lengths, spec.tokens, random));
  return Documents(generated.lengths);
}

RC_GTEST_PROP(Generators, Full, ()) {
  const MaskSpec spec = small_spec("full");
  check(spec, generate_mask(spec), [](auto, auto) { return true; });
}

RC_GTEST_PROP(Generators, Causal, ()) {
  const MaskSpec spec = small_spec("causal");
  check(spec, generate_mask(spec), [](auto q, auto k) { return k <= q; });
}

RC_GTEST_PROP(Generators, SlidingWindow, ()) {
  const MaskSpec spec = small_spec("sliding_window");
  const std::int64_t w = spec.window.value_or(1024);
  const GeneratedMask generated = generate_mask(spec);
  RC_ASSERT(generated.window == w);
  check(spec, generated, [&](auto q, auto k) { return std::abs(q - k) <= w; });
}

RC_GTEST_PROP(Generators, SlidingWindowCausal, ()) {
  const MaskSpec spec = small_spec("sliding_window_causal");
  const std::int64_t w = spec.window.value_or(1024);
  const GeneratedMask generated = generate_mask(spec);
  RC_ASSERT(generated.window == w);
  check(spec, generated, [&](auto q, auto k) { return q - k >= 0 && q - k <= w; });
}

RC_GTEST_PROP(Generators, Document, ()) {
  const MaskSpec spec = small_spec("document");
  const GeneratedMask generated = generate_mask(spec);
  PythonRandom random(spec.seed);
  const Documents documents = documents_of(spec, generated, random);
  check(spec, generated, [&](auto q, auto k) { return documents.together(q, k); });
}

RC_GTEST_PROP(Generators, CausalDocument, ()) {
  const MaskSpec spec = small_spec("causal_document");
  const GeneratedMask generated = generate_mask(spec);
  PythonRandom random(spec.seed);
  const Documents documents = documents_of(spec, generated, random);
  check(spec, generated, [&](auto q, auto k) { return documents.together(q, k) && k <= q; });
}

RC_GTEST_PROP(Generators, SharedQuestion, ()) {
  const MaskSpec spec = small_spec("shared_question");
  const GeneratedMask generated = generate_mask(spec);
  PythonRandom random(spec.seed);
  const Documents documents = documents_of(spec, generated, random);
  check(spec, generated, [&](auto q, auto k) {
    const bool in_question = documents.begin_of(k) == 0;
    return k <= q && (documents.together(q, k) || in_question);
  });
}

RC_GTEST_PROP(Generators, GlobalSlidingWindow, ()) {
  const MaskSpec spec = small_spec("global_sliding_window");
  const GeneratedMask generated = generate_mask(spec);
  PythonRandom random(spec.seed);
  const std::int64_t g = spec.tokens < 6 ? 1 : random.randint(1, spec.tokens / 3 - 1);
  const std::int64_t w = spec.window.value_or(g);
  RC_ASSERT(generated.global_tokens == g);
  RC_ASSERT(generated.window == w);
  check(spec, generated, [&](auto q, auto k) { return q < g || k < g || std::abs(q - k) <= w; });
}

RC_GTEST_PROP(Generators, CausalBlockwise, ()) {
  const MaskSpec spec = small_spec("causal_blockwise");
  const GeneratedMask generated = generate_mask(spec);
  PythonRandom random(spec.seed);
  const Documents documents = documents_of(spec, generated, random);
  check(spec, generated, [&](auto q, auto k) {
    const bool in_last = documents.end_of(q) == spec.tokens;
    return k <= q && (documents.together(q, k) || in_last);
  });
}

RC_GTEST_PROP(Generators, PrefixLmCausal, ()) {
  const MaskSpec spec = small_spec("prefix_lm_causal");
  const GeneratedMask generated = generate_mask(spec);
  RC_ASSERT(generated.prefix.has_value() == (spec.tokens > 0));
  if (spec.tokens == 0) return;
  const std::int64_t p = PythonRandom(spec.seed).randint(1, spec.tokens);
  RC_ASSERT(generated.prefix == p);
  check(spec, generated, [&](auto q, auto k) { return (q < p && k < p) || k <= q; });
}

RC_GTEST_PROP(Generators, PrefixLmDocument, ()) {
  const MaskSpec spec = small_spec("prefix_lm_document");
  const GeneratedMask generated = generate_mask(spec);
  PythonRandom random(spec.seed);
  const Documents documents = documents_of(spec, generated, random);
  if (spec.tokens == 0) return;
  const std::int64_t p = random.randint(1, generated.lengths.front());
  RC_ASSERT(generated.prefix == p);
  check(spec, generated, [&](auto q, auto k) {
    const std::int64_t end = documents.begin_of(q) + p;
    return documents.together(q, k) && ((q < end && k < end) || k <= q);
  });
}

RC_GTEST_PROP(Generators, BlockCausalDocument, ()) {
  const MaskSpec spec = small_spec("block_causal_document");
  const GeneratedMask generated = generate_mask(spec);
  const std::int64_t b = spec.block_tokens.value_or(1024);
  PythonRandom random(spec.seed);
  std::int64_t left = spec.tokens;
  for (const std::int64_t length : generated.lengths) {
    RC_ASSERT(length == std::min(random.randint(1, 8) * b, left));
    left -= length;
  }
  RC_ASSERT(left == 0);
  const Documents documents(generated.lengths);
  check(spec, generated, [&](auto q, auto k) {
    const std::int64_t begin = documents.begin_of(q);
    return documents.together(q, k) && (k - begin) / b <= (q - begin) / b;
  });
}

RC_GTEST_PROP(Generators, BlockSparse, ()) {
  const std::string name = *rc::gen::element<std::string>("block_sparse", "block_sparse_variable");
  MaskSpec spec = small_spec(name);
  spec.block_causal = *rc::gen::arbitrary<bool>();
  const GeneratedMask generated = generate_mask(spec);
  const BlockLists& blocks = *generated.mask.blocks();
  RC_ASSERT(generated.mask.heads() == (spec.block_heads == "kv" ? spec.heads_k : spec.heads_q));
  const auto last_query = [&](std::int64_t i) {
    return blocks.q_bounds[static_cast<std::size_t>(i) + 1] - 1;
  };
  for (int head = 0; head < blocks.heads; ++head) {
    for (std::int64_t i = 0; i < blocks.q_blocks(); ++i) {
      const auto keys = spec.block_causal
                            ? std::count_if(blocks.k_bounds.begin(), blocks.k_bounds.end() - 1,
                                            [&](auto begin) { return begin <= last_query(i); })
                            : blocks.k_blocks();
      const auto kept = std::max<std::int64_t>(
          1, std::llrint(std::nearbyint(spec.density * static_cast<double>(keys))));
      RC_ASSERT(static_cast<std::int64_t>(blocks.kept(head, i).size()) == kept);
    }
    RC_ASSERT(oracle::dense_of(generated.mask, head) ==
              Dense(spec.tokens, spec.tokens, [&](auto q, auto k) {
                return (!spec.block_causal || k <= q) && oracle::block_allows(blocks, head, q, k);
              }));
  }
}

}  // namespace
}  // namespace longca
