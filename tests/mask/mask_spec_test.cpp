#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "mask/error_of.h"
#include "mask/generators.h"

namespace longca {
namespace {

using ::testing::ElementsAre;

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
    EXPECT_EQ(changes([](MaskSpec& s) { s.block_causal = true; }), traits.uses_blocks);
  }
}

std::string error_of_spec(const std::function<void(MaskSpec&)>& change) {
  MaskSpec spec;
  spec.tokens = 100;
  change(spec);
  return testing::error_of([&] { generate_mask(spec); });
}

TEST(Generators, NameWhatTheyRefuse) {
  EXPECT_EQ(error_of_spec([](MaskSpec& s) { s.name = "casual"; }),
            "unknown mask 'casual' (did you mean 'causal'?)");
  EXPECT_EQ(error_of_spec([](MaskSpec& s) { s.tokens = -1; }),
            "tokens = -1: at least 0, at most 1073741824");
  EXPECT_EQ(error_of_spec([](MaskSpec& s) { s.tokens = 1000000000000; }),
            "tokens = 1000000000000: at least 0, at most 1073741824");
  EXPECT_EQ(error_of_spec([](MaskSpec& s) { s.window = -1; }),
            "window = -1: at least 0, at most 1073741824");
  EXPECT_EQ(error_of_spec([](MaskSpec& s) { s.block_tokens = 0; }),
            "block_tokens = 0: at least 1, at most 1073741824");
  EXPECT_EQ(error_of_spec([](MaskSpec& s) {
              s.name = "block_causal_document";
              s.tokens = 1 << 30;
              s.block_tokens = 15;
            }),
            "1073741824 tokens are 71582788 blocks of block_tokens = 15: the limit is 67108864");
  EXPECT_EQ(error_of_spec([](MaskSpec& s) { s.block = 0; }),
            "block = 0: at least 1, at most 1073741824");
  EXPECT_EQ(error_of_spec([](MaskSpec& s) { s.density = 0; }),
            "density = 0: above 0 and at most 1");
  EXPECT_EQ(error_of_spec([](MaskSpec& s) { s.density = 1.5; }),
            "density = 1.5: above 0 and at most 1");
  EXPECT_EQ(error_of_spec([](MaskSpec& s) { s.density = std::nan(""); }),
            "density = nan: above 0 and at most 1");
  EXPECT_EQ(error_of_spec([](MaskSpec& s) {
              s.heads_q = 7;
              s.heads_k = 3;
            }),
            "heads = 7:3: the KV heads must divide the query heads");
  EXPECT_EQ(error_of_spec([](MaskSpec& s) { s.block_heads = "kw"; }),
            "block_heads = 'kw': 'kv' or 'query' (did you mean 'kv'?)");
  EXPECT_EQ(error_of_spec([](MaskSpec& s) {
              s.name = "document";
              s.lengths = "pike";
            }),
            "unknown length distribution 'pike' (did you mean 'pile'?)");
}

}  // namespace
}  // namespace longca
