#include "mask/own_mask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <sstream>

#include "core/error.h"
#include "mask/error_of.h"
#include "mask/mask_json.h"
#include "mask/own_file.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string json_of(const GeneratedMask& generated, const MaskSpec& spec) {
  std::ostringstream out;
  write_mask_json(out, generated, spec);
  return out.str();
}

std::string error_of_json(const std::string& text) {
  return error_of([&] { parse_mask_json(text, "m.json"); });
}

TEST(OwnMask, AreasAreExactBeyondWhatADoubleHolds) {
  MaskSpec spec;
  spec.name = "causal";
  spec.tokens = 134217729;
  EXPECT_THAT(json_of(generate_mask(spec), spec), HasSubstr("\"area\":9007199456067585,"));
}

TEST(OwnMask, IsWhatMaskJsonPrints) {
  for (const MaskTraits& traits : mask_table()) {
    for (const bool causal : {false, true}) {
      MaskSpec spec;
      spec.name = traits.name;
      spec.tokens = 300;
      spec.window = 37;
      spec.block_tokens = 16;
      spec.block = 24;
      spec.heads_q = spec.heads_k = 3;
      spec.block_causal = causal;
      const GeneratedMask made = generate_mask(spec);
      const std::string text = json_of(made, spec);
      const OwnMask own = parse_mask_json(text, "m.json");
      spec.block_causal = own.block_causal;
      EXPECT_EQ(json_of(own.generated, spec), text);
      for (int head = 0; head < made.mask.heads(); ++head) {
        EXPECT_EQ(own.generated.mask.dense(head), made.mask.dense(head)) << traits.name;
      }
    }
  }
}

TEST(OwnMask, NeedsLittleBesideItsCells) {
  const OwnMask own =
      parse_mask_json("{\"tokens\": 9,\n \"slices\": [[0, 9, 0, 9, \"causal\"]]}", "m");
  EXPECT_EQ(own.generated.mask.mean_area(), 45);
  EXPECT_TRUE(own.generated.lengths.empty());
  EXPECT_FALSE(own.generated.prefix);
  const OwnMask none = parse_mask_json(R"({"tokens": 9, "slices": [], "blocks": null})", "m");
  EXPECT_EQ(none.generated.mask.mean_area(), 0);
}

TEST(OwnMask, ErrorsNameTheFileTheKeyAndTheLimit) {
  const std::string slices = R"("slices":[[0,4,0,4,"full"]])";
  const std::pair<std::string, const char*> cases[] = {
      {"{\n \"tokens\": 4,\n}", "m.json: no valid JSON at line 3, column 1"},
      {"[]", "m.json: a mask is an object, not array"},
      {"{" + slices + "}", "m.json: the key 'tokens' is missing"},
      {"{\"tokens\":4}", "either 'slices' or 'blocks'"},
      {"{\"tokens\":0," + slices + "}", "m.json: tokens is 0: at least 1, at most 1073741824"},
      {"{\"tokens\":1073741825," + slices + "}", "tokens is 1073741825: at least 1, at most"},
      {"{\"tokens\":18446744073709551615," + slices + "}", "tokens is 18446744073709551615: at"},
      {"{\"tokens\":4.5," + slices + "}", "tokens must be a whole number, but is 4.5"},
      {"{\"tokens\":4,\"tokens\":5," + slices + "}", "the key \"tokens\" is there twice"},
      {"{\"tokens\":4,\"token\":4," + slices + "}", "unknown key 'token' (did you mean 'tokens'?)"},
      {"{\"tokens\":4,\"area\":15," + slices + "}", "area is 15, and the mask has 16 cells"},
      {"{\"tokens\":4,\"lengths\":[1,2]," + slices + "}", "lengths add up to 3 tokens, not 4"},
      {"{\"tokens\":4,\"lengths\":[4,0]," + slices + "}", "lengths[1] is 0: at least 1"},
      {"{\"tokens\":4,\"window\":-1," + slices + "}", "window is -1: at least 0"},
      {"{\"tokens\":4,\"block_causal\":true," + slices + "}",
       "block_causal is of a mask with blocks, and this one has slices"},
      {"{\"tokens\":4,\"q_bounds\":[0,4]," + slices + "}", "q_bounds is of a mask with blocks"},
      {"{\"tokens\":4,\"k_bounds\":5," + slices + "}", "k_bounds is of a mask with blocks"},
      {"{\"tokens\":18446744073709551616," + slices + "}", "tokens is 1.8446744073709552e+19: at"},
      {"{\"tokens\":4,\n\"area\":1e400," + slices + "}",
       "the number at line 2, column 8 is too large: the maximum is 1.7977e+308"},
      {R"({"tokens":4,"slices":null,"blocks":null})", "either 'slices' or 'blocks'"},
      {R"({"tokens":4,"blocks":[[[0]]],"q_bounds":[0,4],"k_bounds":[0,4],"block_causal":1})",
       "block_causal must be true or false, but is 1"},
      {R"({"tokens":4,"slices":5})", "slices must be a list, but is number"},
      {R"({"tokens":4,"slices":[[0,4,0,4]]})", "slices[0] has 4 entries instead of"},
      {R"({"tokens":4,"slices":[[0,4,0,"4","full"]]})", "slices[0][3] must be a whole number"},
      {R"({"tokens":4,"slices":[[0,4,-1,4,"full"]]})", "slices[0][2] is -1: at least 0"},
      {R"({"tokens":4,"slices":[[0,4,0,4,"casual"]]})", "(did you mean 'causal'?)"},
      {R"({"tokens":4,"slices":[[0,5,0,4,"full"]]})", "reaches outside the mask of 4 queries"},
      {R"({"tokens":4,"slices":[[0,4,0,4,"full"],[0,1,0,1,"full"]]})", "m.json: "},
      {"{\"tokens\":4,\"slices\":[[[[[[1]]]]]]}", "nested deeper than 4"},
      {R"({"tokens":4,"blocks":[],"q_bounds":[0,4],"k_bounds":[0,4]})", "blocks has no list"},
      {R"({"tokens":4,"blocks":[[[0]]],"k_bounds":[0,4]})", "the key 'q_bounds' is missing"},
      {R"({"tokens":4,"blocks":[[[0]]],"q_bounds":[0,2,4],"k_bounds":[0,4]})",
       "blocks[0] has 1 query blocks, and q_bounds 2"},
      {R"({"tokens":4,"blocks":[[[1]]],"q_bounds":[0,4],"k_bounds":[0,4]})", "m.json: "},
      {R"({"tokens":4,"blocks":[[[4294967296]]],"q_bounds":[0,4],"k_bounds":[0,4]})",
       "blocks[0][0] is 4294967296: at least 0"},
      {R"({"tokens":4,"blocks":[[]],"q_bounds":[],"k_bounds":[0,4]})", "m.json: "},
      {R"({"tokens":4,"blocks":[[[0]]],"q_bounds":[0,3],"k_bounds":[0,4]})", "m.json: "},
  };
  for (const auto& [text, part] : cases) {
    const std::string error = error_of_json(text);
    EXPECT_THAT(error, HasSubstr(part)) << text;
    EXPECT_TRUE(error.starts_with("m.json: ")) << error;
  }
}

/// A file with this text, read.
std::string added(const TempDirectory& folder, const std::string& text) {
  write_file(folder / "m.json", text);
  return add_own_mask(folder / "m.json");
}

TEST(OwnMask, IsAMaskByItsName) {
  const TempDirectory folder;
  MaskSpec spec;
  spec.name = added(folder, R"({"tokens": 8, "slices": [[0, 8, 0, 2, "full"]], "lengths": [8]})");
  spec.tokens = 8;
  EXPECT_EQ(without_hash(spec.name), "m.json");
  EXPECT_EQ(mask_traits(spec.name).name, spec.name);
  EXPECT_FALSE(mask_traits(spec.name).uses_lengths);
  EXPECT_EQ(generate_mask(spec).mask.mean_area(), 16);
  EXPECT_THAT(generate_mask(spec).lengths, ElementsAre(8));
  EXPECT_EQ(estimate_pieces(spec), 1);
  spec.tokens = 9;
  EXPECT_EQ(error_of([&] { generate_mask(spec); }),
            "m.json is a mask of 8 tokens, and the sequence has 9");
  EXPECT_NE(added(folder, R"({"tokens": 8, "slices": [[0, 8, 0, 3, "full"]]})"), spec.name);
  EXPECT_THAT(error_of([] { mask_traits("m.json-0123456789abcdef"); }),
              HasSubstr("was not read: give mask=FILE"));
}

TEST(OwnMask, FitsItsLengthAndHeads) {
  const OwnMask own = parse_mask_json(
      R"({"tokens":4,"blocks":[[[0]],[[0]]],"q_bounds":[0,4],"k_bounds":[0,4]})", "m");
  EXPECT_EQ(misfit(own, 4, 2, 1), "");
  EXPECT_EQ(misfit(own, 4, 8, 2), "");
  EXPECT_THAT(misfit(own, 4, 8, 4), HasSubstr("has 2 block lists: one per KV or query head"));
  EXPECT_THAT(misfit(own, 5, 8, 2), HasSubstr("is a mask of 4 tokens"));
}

RC_GTEST_PROP(OwnMask, AMutatedFileIsAMaskOrAnInputError, ()) {
  std::string text = R"({"tokens":9,"blocks":[[[0],[0,1]]],"q_bounds":[0,4,9],"k_bounds":[0,4,9],)"
                     R"("block_causal":true,"lengths":[9],"area":45})";
  const auto changes = *rc::gen::inRange(1, 4);
  for (int i = 0; i < changes; ++i) {
    text[*rc::gen::inRange<std::size_t>(0, text.size())] =
        *rc::gen::elementOf(std::string("0123456789[]{},:\"-.e tfn"));
  }
  try {
    RC_ASSERT(parse_mask_json(text, "m").generated.mask.q_tokens() >= 1);
  } catch (const InputError&) {
    RC_SUCCEED("refused");
  }
}

}  // namespace
}  // namespace longca::testing
