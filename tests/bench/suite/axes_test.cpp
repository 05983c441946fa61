#include "bench/suite/axes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "bench/expect_input_error.h"
#include "bench/random_case.h"
#include "bench/suite/scheme_axes.h"
#include "parallel/partition/sharding.h"

namespace longca::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> values_of(const std::string& argument) {
  AxisValues values;
  parse_axis_argument(argument, values);
  return values.begin()->second;
}

TEST(Axes, TakeCountsSuffixesAndRanges) {
  EXPECT_THAT(values_of("tokens=1K,3000"), ElementsAre("1024", "3000"));
  EXPECT_THAT(values_of("tokens=1K:8K:x2"), ElementsAre("1024", "2048", "4096", "8192"));
  EXPECT_THAT(values_of("tokens=1M"), ElementsAre("1048576"));
  EXPECT_THAT(values_of("tokens=64, 1K,64"), ElementsAre("64", "1024"));
  EXPECT_THAT(values_of("window=auto,0"), ElementsAre("auto", "0"));
  EXPECT_THAT(values_of("heads=8:2,4"), ElementsAre("8:2", "4:4"));
  EXPECT_THAT(values_of("dim=64,192:128,128:128,64"), ElementsAre("64", "192:128", "128"));
  EXPECT_THAT(values_of("dim=64:256:x2,192:1"), ElementsAre("64", "128", "256", "192:1"));
  EXPECT_THAT(values_of("density=0.5,1,1e-1"), ElementsAre("0.5", "1", "0.1"));
}

TEST(Axes, AllIsEveryName) {
  EXPECT_EQ(values_of("mask=all").size(), mask_table().size());
  EXPECT_THAT(values_of("pass=all"), ElementsAre("forward", "backward", "step"));
  EXPECT_THAT(values_of("dtype=bfloat16,all"), ElementsAre("bfloat16", "float32", "float16"));
}

TEST(Axes, StandardValuesAreTheirOwn) {
  for (const Axis& axis : axis_table()) {
    if (axis.standard.empty()) {
      EXPECT_TRUE(axis.over_ranks) << axis.name;
    } else {
      EXPECT_FALSE(axis.parse(axis.standard).empty()) << axis.name;
    }
  }
}

TEST(Axes, RefuseWhatCannotBeMeant) {
  const std::pair<const char*, const char*> cases[] = {
      {"tokens=0", "tokens 0 is too small: the minimum is 1"},
      {"tokens=-1", "tokens -1 is too small"},
      {"tokens=1.5", "tokens '1.5'"},
      {"tokens=1000000000000", "the maximum is 1073741824"},
      {"tokens=", "empty"},
      {"tokens=1K,,2K", "empty"},
      {"heads=7:3", "7 query heads are no multiple of 3 KV heads"},
      {"heads=0", "heads 0 is too small"},
      {"heads=8:2:1", "heads '8:2:1' has more than two numbers"},
      {"density=0", "density 0 is not above 0 and at most 1"},
      {"density=1.5", "density 1.5 is not above 0 and at most 1"},
      {"density=nan", "density"},
      {"block=0", "block 0 is too small"},
      {"dim=0", "dim 0 is too small"},
      {"dim=192:256", "dim 192:256: v of dimension 256 is larger than q and k of 192"},
      {"dim=0:128", "dim 0 is too small"},
      {"dim=128:0", "dim 0 is too small"},
      {"dim=2048:128", "dim 2048 is too large: the maximum is 1024"},
      {"dim=128:", "dim '128:' has no number on one side of the colon"},
      {"dim=:128", "dim ':128' has no number on one side of the colon"},
      {"heads=8:", "heads '8:' has no number on one side of the colon"},
      {"dim=a:b", "dim 'a'"},
      {"mask=causl", "unknown mask 'causl' (did you mean 'causal'?)"},
      {"dtype=bf16", "unknown dtype 'bf16' (did you mean 'bfloat16'?)"},
      {"dtype=float32,fp16", "unknown dtype 'fp16' (did you mean 'float16'?)"},
      {"dtype=half", "unknown dtype 'half' (did you mean 'float16'?)"},
      {"dtype=fp32", "unknown dtype 'fp32' (did you mean 'float32'?)"},
      {"dtype=float", "unknown dtype 'float' (did you mean 'float32'?)"},
      {"dtype=fp8", "unknown dtype 'fp8' (known: float32, bfloat16, float16)"},
      {"device=cpu,gpu", "unknown device 'gpu' (did you mean 'cuda'?)"},
      {"tokens=1K:4K:x1.5", "the factor of tokens '1K:4K:x1.5': '1.5' is not a whole number"},
      {"mask=all,causl", "unknown mask 'causl' (did you mean 'causal'?)"},
      {"mask=all,nope", "unknown mask 'nope' (known: full, causal, "},
      {"kernel=naiv", "did you mean 'naive'"},
      {"dtype=fp8", "known: float32, bfloat16, float16"},
      {"token=5", "unknown axis 'token' (did you mean 'tokens'?)"},
      {"scheme=ulises", "unknown scheme 'ulises' (did you mean 'ulysses'?)"},
      {"ranks=0", "ranks 0 is too small: the minimum is 1"},
      {"platform=h200x8", "longca simulate --platform P sets it"},
      {"simulated_mode=sustained", "longca simulate -a mode=sustained sets it"},
      {"ranks=2.5", "ranks '2.5'"},
      {"ranks=fund",
       "unknown ranks 'fund': a whole number (such as 4096 or 4K) or 'found' (did you "
       "mean 'found'?)"},
      {"window=aut", "(did you mean 'auto'?)"},
      {"shard=zigzg", "unknown shard 'zigzg' (did you mean 'zigzag'?)"},
      {"factor=0", "factor 0 is too small"},
      {"transport=tcp", "unknown transport 'tcp' (known: mpi, nccl, peer)"},
      {"tokens_per_rank=0", "tokens_per_rank 0 is too small"},
      {"token_per_rank=5", "did you mean 'tokens_per_rank'"},
      {"tokens", "'tokens' is not AXIS=VALUES"},
  };
  for (const auto& each : cases) {
    expect_input_error([&] { values_of(each.first); }, each.second);
  }
}

TEST(Axes, KeysAreCanonical) {
  Case c;
  c.kernel = "naive";
  c.mask = "causal";
  c.tokens = 4096;
  c.lengths = "pile";
  c.window = 7;
  c.density = 0.25;
  c.heads_q = 8;
  c.heads_k = 2;
  EXPECT_EQ(
      canonical(c).key(),
      "kernel=naive mask=causal tokens=4096 heads=8:2 dim=128 dtype=bfloat16 pass=forward seed=42 "
      "device=cpu mode=burst");
  EXPECT_EQ(canonical(c).problem_key(),
            "mask=causal tokens=4096 heads=8:2 dim=128 dtype=bfloat16 seed=42 device=cpu");
}

/// Of q, k and v of one dimension, keys and records are what they were before v could have another.
TEST(Axes, ADimensionOfVIsThereWhereItDiffers) {
  const Axis& dim = find_axis("dim");
  Case c;
  for (const char* text : {"128", "192:128", "64"}) {
    dim.assign(c, text);
    EXPECT_EQ(dim.text(c), text);
    const bool differs = std::string(text) == "192:128";
    EXPECT_EQ(c.head_dim_v.has_value(), differs);
    nlohmann::json entries = nlohmann::json::object();
    dim.write(c, entries);
    EXPECT_EQ(entries.contains("head_dim_v"), differs);
    EXPECT_EQ(c.problem().value_dim(), differs ? 128 : c.head_dim);
    Case read;
    dim.read(entries, read);
    EXPECT_EQ(read, c);
  }
  dim.assign(c, "192:128");
  EXPECT_THAT(c.problem_key(), HasSubstr("dim=192:128"));
  Case same;
  dim.read({{"head_dim", 128}, {"head_dim_v", 128}}, same);
  EXPECT_EQ(same, Case{}) << "a record of one dimension said twice has the same key";
}

/// Keys and records written before these axes were there stay what they are.
TEST(Axes, YoungOnesLeaveTheirStandardOut) {
  const std::vector<std::string> standards = {"inputs=normal", "block_causal=0",
                                              "selection=random"};
  const std::vector<std::string> others = {"inputs=clustered", "block_causal=1",
                                           "selection=scores"};
  Case c;
  c.kernel = "naive";
  c.mask = "block_sparse";
  c.tokens = 64;
  c.density = 0.5;
  c.block = 16;
  c.block_heads = "kv";
  const Case before = canonical(c);
  const auto assigned = [&](const std::vector<std::string>& arguments) {
    Case changed = c;
    AxisValues values;
    for (const std::string& argument : arguments) parse_axis_argument(argument, values);
    for (const auto& [name, texts] : values) find_axis(name).assign(changed, texts.front());
    return canonical(changed);
  };
  EXPECT_EQ(assigned(others).key(),
            "kernel=naive mask=block_sparse tokens=64 heads=1:1 dim=128 dtype=bfloat16 "
            "pass=forward seed=42 inputs=clustered density=0.5 block=16 block_heads=kv "
            "block_causal=1 selection=scores device=cpu mode=burst");
  c = assigned(others);
  EXPECT_TRUE(c.mask_spec().block_causal);
  EXPECT_EQ(c.input_style(), InputStyle::clustered);
  EXPECT_EQ(assigned(standards), before) << "a standard takes back what was there";
  nlohmann::json json = before;
  EXPECT_FALSE(json.contains("selection"));
  json["selection"] = "random";
  json["inputs"] = "normal";
  json["block_causal"] = 0;
  EXPECT_EQ(json.get<Case>(), before);
  json["selection"] = "scrores";
  expect_input_error([&] { json.get<Case>(); }, "scrores");
  c.mask = "causal";
  EXPECT_EQ(full_text(find_axis("selection"), canonical(c)), std::nullopt);
  EXPECT_EQ(canonical(c).key(),
            "kernel=naive mask=causal tokens=64 heads=1:1 dim=128 dtype=bfloat16 pass=forward "
            "seed=42 inputs=clustered device=cpu mode=burst");
  EXPECT_EQ(full_text(find_axis("selection"), before), "random");
}

TEST(Axes, ASeedGivenTwiceIsAnError) {
  const Axis& seed = find_axis("seed");
  EXPECT_EQ(seed.parse("42,44,43"), (std::vector<std::string>{"42", "44", "43"}));
  expect_input_error([&] { seed.parse("42,43,42"); }, "seed 42 is given twice");
  expect_input_error([&] { seed.parse("1:4:x2,2"); }, "seed 2 is given twice");
}

TEST(Axes, AllPassesIncludeTheStepAndTheStandardDoesNot) {
  const Axis& pass = find_axis("pass");
  EXPECT_EQ(pass.parse("all"), (std::vector<std::string>{"forward", "backward", "step"}));
  EXPECT_EQ(pass.parse(pass.standard), (std::vector<std::string>{"forward", "backward"}));
  Case c;
  c.pass = Pass::step;
  EXPECT_TRUE(c.problem().backward);
}

TEST(Axes, DeterminismIsAskedOfBackwardPassesOnly) {
  Case c;
  c.kernel = "naive";
  c.mask = "full";
  c.tokens = 64;
  c.pass = Pass::backward;
  const Case plain = canonical(c);
  c.deterministic = 1;
  EXPECT_TRUE(c.problem().deterministic);
  EXPECT_EQ(canonical(c).key(),
            "kernel=naive mask=full tokens=64 heads=1:1 dim=128 dtype=bfloat16 pass=backward "
            "deterministic=1 seed=42 device=cpu mode=burst");
  EXPECT_EQ(canonical(c).problem_key(), plain.problem_key());
  EXPECT_EQ(full_text(find_axis("deterministic"), plain), "0");
  c.pass = Pass::forward;
  EXPECT_FALSE(canonical(c).deterministic.has_value());
}

TEST(Axes, SinkAndSoftcapAreInAKeyWhereTheyAreNot0) {
  Case c;
  c.kernel = "naive";
  c.mask = "full";
  c.tokens = 64;
  const Case plain = canonical(c);
  find_axis("sink").assign(c, "0");
  find_axis("softcap").assign(c, find_axis("softcap").parse("0.0").front());
  EXPECT_EQ(canonical(c), plain);
  EXPECT_FALSE(c.problem().sink);
  EXPECT_EQ(c.problem().softcap, 0.0F);
  find_axis("sink").assign(c, "1");
  find_axis("softcap").assign(c, "30");
  EXPECT_TRUE(c.problem().sink);
  EXPECT_EQ(c.problem().softcap, 30.0F);
  EXPECT_EQ(canonical(c).key(),
            "kernel=naive mask=full tokens=64 heads=1:1 dim=128 dtype=bfloat16 pass=forward "
            "sink=1 softcap=30 seed=42 device=cpu mode=burst");
  EXPECT_NE(canonical(c).problem_key(), plain.problem_key());
  const nlohmann::json json = canonical(c);
  EXPECT_EQ(json.at("sink"), 1);
  EXPECT_EQ(json.at("softcap"), 30.0);
  EXPECT_EQ(json.get<Case>(), canonical(c));
  EXPECT_FALSE(nlohmann::json(plain).contains("sink"));
  EXPECT_FALSE(nlohmann::json(plain).contains("softcap"));
}

TEST(Axes, SinkAndSoftcapAreWithinTheirLimits) {
  const auto reason_of = [](const char* axis, const char* value) -> std::string {
    try {
      find_axis(axis).parse(value);
    } catch (const InputError& error) {
      return error.what();
    }
    return "taken";
  };
  EXPECT_EQ(reason_of("softcap", "0,0.001,30,1e6"), "taken");
  for (const char* value : {"-1", "-0.5", "1e-4", "1e7", "inf", "nan", "cap"}) {
    EXPECT_THAT(reason_of("softcap", value), ::testing::HasSubstr(value));
  }
  EXPECT_EQ(reason_of("softcap", "-30"), "softcap -30 is neither 0 nor from 0.001 to 1000000");
  EXPECT_THAT(reason_of("sink", "2"), ::testing::HasSubstr("2"));
  EXPECT_THAT(reason_of("sink", "-1"), ::testing::HasSubstr("-1"));
}

TEST(Axes, OfRanksComeLastInAKeyAndOnlyWithAScheme) {
  Case c;
  c.kernel = "naive";
  c.mask = "full";
  c.tokens = 64;
  c.ranks = 4;
  c.shard = "best";
  c.transport = "mpi";
  const std::string alone =
      "kernel=naive mask=full tokens=64 heads=1:1 dim=128 dtype=bfloat16 pass=forward seed=42 "
      "device=cpu mode=burst";
  EXPECT_EQ(canonical(c).key(), alone);
  c.scheme = "ulysses";
  EXPECT_EQ(canonical(c).key(), alone + " scheme=ulysses ranks=4 shard=contiguous transport=mpi");
  EXPECT_EQ(canonical(c).problem_key(),
            "mask=full tokens=64 heads=1:1 dim=128 dtype=bfloat16 seed=42 device=cpu ranks=4");
}

TEST(Axes, AShardIsAKindAndDefaultsAreWrittenOut) {
  Case c;
  c.mask = "causal";
  c.ranks = 4;
  c.heads_q = c.heads_k = 8;
  for (const std::string& scheme : scheme_names()) {
    c.scheme = scheme;
    for (const std::string& shard : shard_names()) {
      c.shard = shard;
      const Case written = canonical(c);
      EXPECT_THAT(shard_kind_names(), ::testing::Contains(*written.shard)) << scheme;
      EXPECT_EQ(written.transport, "mpi");
      EXPECT_EQ(canonical(written), written) << scheme;
    }
    c.factor = 2;
    const bool has_factor = scheme == "usp" || scheme == "loongtrain";
    EXPECT_EQ(canonical(c).factor, has_factor ? std::optional(2) : std::nullopt) << scheme;
    c.factor.reset();
    EXPECT_EQ(canonical(c).factor.has_value(), has_factor) << scheme;
  }
  c.device = "cuda";
  EXPECT_EQ(canonical(c).transport, "peer");
}

TEST(Axes, TokensPerRankAreAnotherWayToSayTokens) {
  const Axis& axis = find_axis("tokens_per_rank");
  Case c;
  c.ranks = 3;
  axis.assign(c, axis.parse("1K").front());
  EXPECT_EQ(c.tokens, 3072);
  EXPECT_EQ(axis.text(c), "1024");
  c.tokens = 1000;
  EXPECT_EQ(axis.text(c), std::nullopt);
  c.ranks = 1 << 20;
  expect_input_error([&] { axis.assign(c, "1048576"); }, "1048576 ranks of 1048576 tokens");
}

TEST(Axes, ADefaultWindowIsTheSameCellWrittenOut) {
  Case c;
  c.mask = "sliding_window";
  Case written = c;
  written.window = 1024;
  EXPECT_EQ(canonical(c).key(), canonical(written).key());
  // This mask draws its window: none given is a cell of its own.
  c.mask = written.mask = "global_sliding_window";
  EXPECT_NE(canonical(c).key(), canonical(written).key());
}

RC_GTEST_PROP(Axes, CasesSurviveJson, ()) {
  const Case c = *random_case();
  nlohmann::json json = c;
  const Case back = json.get<Case>();
  RC_ASSERT(back == c);
  RC_ASSERT(back.key() == c.key());
}

RC_GTEST_PROP(Axes, TextsRebuildTheCase, ()) {
  const Case c = *random_case();
  Case rebuilt;
  for (const Axis& axis : axis_table()) {
    const auto text = axis.text(c);
    if (!text) continue;
    const auto values = axis.parse(*text);
    RC_ASSERT(values == std::vector<std::string>{*text});
    axis.assign(rebuilt, *text);
  }
  RC_ASSERT(canonical(rebuilt) == c);
}

RC_GTEST_PROP(Axes, DifferentWorkHasDifferentKeys, ()) {
  const Case a = *random_case();
  const Case b = *random_case();
  RC_ASSERT((a.key() == b.key()) == (a == b));
}

TEST(Axes, WrongTypesInACaseAreNamed) {
  Case c;
  c.kernel = "naive";
  c.mask = "causal";
  c.tokens = 4096;
  const nlohmann::json json = canonical(c);
  for (const char* key : {"tokens", "mask", "heads_q", "dtype", "seed"}) {
    nlohmann::json changed = json;
    changed[key] = nlohmann::json::array();
    expect_input_error([&] { changed.get<Case>(); }, key);
    changed.erase(key);
    expect_input_error([&] { changed.get<Case>(); }, key);
  }
}

}  // namespace
}  // namespace longca::testing
