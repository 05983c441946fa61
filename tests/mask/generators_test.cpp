#include "mask/generators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

#include "core/python_random.h"
#include "mask/lengths.h"
#include "mask/oracle.h"

namespace longca {
namespace {

using oracle::Dense;
using ::testing::ElementsAre;

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
  const MaskSpec spec = small_spec(name);
  const GeneratedMask generated = generate_mask(spec);
  const BlockLists& blocks = *generated.mask.blocks();
  RC_ASSERT(generated.mask.heads() == (spec.block_heads == "kv" ? spec.heads_k : spec.heads_q));
  const auto keys = static_cast<double>(blocks.k_blocks());
  const auto kept = std::max<std::int64_t>(1, std::llrint(std::nearbyint(spec.density * keys)));
  for (int head = 0; head < blocks.heads; ++head) {
    for (std::int64_t i = 0; i < blocks.q_blocks(); ++i) {
      RC_ASSERT(static_cast<std::int64_t>(blocks.kept(head, i).size()) == kept);
    }
    RC_ASSERT(oracle::dense_of(generated.mask, head) ==
              Dense(spec.tokens, spec.tokens,
                    [&](auto q, auto k) { return oracle::block_allows(blocks, head, q, k); }));
  }
}

TEST(Generators, BlockBoundsAreUniformOrVariable) {
  MaskSpec spec;
  spec.name = "block_sparse";
  spec.tokens = 1000;
  const Mask uniform = generate_mask(spec).mask;
  EXPECT_THAT(uniform.blocks()->q_bounds, ElementsAre(0, 128, 256, 384, 512, 640, 768, 896, 1000));
  EXPECT_EQ(uniform.blocks()->k_bounds, uniform.blocks()->q_bounds);
  spec.name = "block_sparse_variable";
  const Mask variable = generate_mask(spec).mask;
  EXPECT_THAT(variable.blocks()->q_bounds,
              ElementsAre(0, 92, 162, 296, 422, 543, 642, 732, 818, 990, 1000));
  EXPECT_THAT(variable.blocks()->k_bounds,
              ElementsAre(0, 71, 158, 277, 400, 470, 584, 755, 875, 1000));
}

// Printed by CPython 3.11 from random.Random(seed).
TEST(Generators, DrawWhatCPythonDraws) {
  MaskSpec spec;
  spec.name = "prefix_lm_causal";
  spec.tokens = 8192;
  EXPECT_EQ(generate_mask(spec).prefix, 1825);
  spec.seed = (std::uint64_t{1} << 63) + 9;
  spec.tokens = 786432;
  EXPECT_EQ(generate_mask(spec).prefix, 755148);
  spec.name = "global_sliding_window";
  EXPECT_EQ(generate_mask(spec).global_tokens, 188787);
  spec.seed = 42;
  spec.tokens = 8192;
  EXPECT_EQ(generate_mask(spec).window, 2620);
  spec.name = "prefix_lm_document";
  EXPECT_EQ(generate_mask(spec).prefix, 105);
  spec.name = "block_causal_document";
  EXPECT_THAT(generate_mask(spec).lengths, ElementsAre(2048, 1024, 5120));
  spec.block_tokens = 7;
  spec.tokens = 100;
  spec.seed = 0;
  EXPECT_THAT(generate_mask(spec).lengths, ElementsAre(49, 49, 2));
}

TEST(Generators, AnExplicitWindowLeavesTheGlobalTokensAsDrawn) {
  MaskSpec spec;
  spec.name = "global_sliding_window";
  spec.tokens = 8192;
  spec.window = 37;
  const GeneratedMask generated = generate_mask(spec);
  EXPECT_EQ(generated.global_tokens, 2620);
  EXPECT_EQ(generated.window, 37);
}

TEST(Generators, AreTheFourteenInOrder) {
  std::vector<std::string> names;
  for (const MaskTraits& traits : mask_table()) {
    names.push_back(traits.name);
    EXPECT_FALSE(traits.description.empty()) << traits.name;
    EXPECT_EQ(mask_traits(traits.name).description, traits.description);
  }
  EXPECT_THAT(names,
              ElementsAre("full", "causal", "sliding_window", "sliding_window_causal", "document",
                          "causal_document", "shared_question", "global_sliding_window",
                          "causal_blockwise", "prefix_lm_causal", "prefix_lm_document",
                          "block_causal_document", "block_sparse", "block_sparse_variable"));
}

// Traits say which axes change a mask: changing any other one changes nothing.
TEST(Generators, TraitsNameTheAxesThatMatter) {
  for (const MaskTraits& traits : mask_table()) {
    MaskSpec spec;
    spec.name = traits.name;
    spec.tokens = 3000;
    spec.window = 100;
    spec.block_tokens = 100;
    const auto cells = [](const MaskSpec& s) {
      const Mask mask = generate_mask(s).mask;
      std::vector<std::vector<std::uint8_t>> heads;
      for (int head = 0; head < mask.heads(); ++head) heads.push_back(mask.dense(head));
      return heads;
    };
    const auto changes = [&](auto change) {
      MaskSpec other = spec;
      change(other);
      return cells(other) != cells(spec);
    };
    SCOPED_TRACE(traits.name);
    EXPECT_EQ(changes([](MaskSpec& s) { s.lengths = "pile"; }), traits.uses_lengths);
    EXPECT_EQ(changes([](MaskSpec& s) { s.seed = 43; }), traits.uses_seed);
    EXPECT_EQ(changes([](MaskSpec& s) { s.window = 101; }), traits.uses_window);
    EXPECT_EQ(changes([](MaskSpec& s) { s.block_tokens = 99; }), traits.uses_block_tokens);
    EXPECT_EQ(changes([](MaskSpec& s) { s.density = 0.2; }), traits.uses_blocks);
    EXPECT_EQ(changes([](MaskSpec& s) { s.block = 100; }), traits.uses_blocks);
  }
}

std::string error_of(const std::function<void(MaskSpec&)>& change) {
  MaskSpec spec;
  spec.tokens = 100;
  change(spec);
  try {
    generate_mask(spec);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no InputError";
}

TEST(Generators, NameWhatTheyRefuse) {
  EXPECT_EQ(error_of([](MaskSpec& s) { s.name = "casual"; }),
            "unknown mask 'casual' (did you mean 'causal'?)");
  EXPECT_EQ(error_of([](MaskSpec& s) { s.tokens = -1; }),
            "tokens = -1: at least 0, at most 1073741824");
  EXPECT_EQ(error_of([](MaskSpec& s) { s.tokens = 1000000000000; }),
            "tokens = 1000000000000: at least 0, at most 1073741824");
  EXPECT_EQ(error_of([](MaskSpec& s) { s.window = -1; }),
            "window = -1: at least 0, at most 1073741824");
  EXPECT_EQ(error_of([](MaskSpec& s) { s.block_tokens = 0; }),
            "block_tokens = 0: at least 1, at most 1073741824");
  EXPECT_EQ(error_of([](MaskSpec& s) { s.block = 0; }),
            "block = 0: at least 1, at most 1073741824");
  EXPECT_EQ(error_of([](MaskSpec& s) { s.density = 0; }), "density = 0: above 0 and at most 1");
  EXPECT_EQ(error_of([](MaskSpec& s) { s.density = 1.5; }), "density = 1.5: above 0 and at most 1");
  EXPECT_EQ(error_of([](MaskSpec& s) { s.density = std::nan(""); }),
            "density = nan: above 0 and at most 1");
  EXPECT_EQ(error_of([](MaskSpec& s) {
              s.heads_q = 7;
              s.heads_k = 3;
            }),
            "heads = 7:3: the KV heads must divide the query heads");
  EXPECT_EQ(error_of([](MaskSpec& s) { s.block_heads = "kw"; }),
            "block_heads = 'kw': 'kv' or 'query' (did you mean 'kv'?)");
  EXPECT_EQ(error_of([](MaskSpec& s) {
              s.name = "document";
              s.lengths = "pike";
            }),
            "unknown length distribution 'pike' (did you mean 'pile'?)");
}

}  // namespace
}  // namespace longca
