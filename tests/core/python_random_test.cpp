#include "core/python_random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "core/error.h"

namespace longca {
namespace {

using ::testing::ElementsAreArray;

// All tables were printed by CPython 3.11's random.Random(seed).

struct Known {
  std::uint64_t seed;
  std::vector<double> random;          ///< random() four times
  std::vector<std::uint64_t> bits;     ///< getrandbits of kBits
  std::vector<std::int64_t> randint;   ///< randint of kRanges
  std::vector<std::int64_t> shuffled;  ///< shuffle(list(range(12)))
  std::vector<std::size_t> chosen;     ///< choices(range(5), weights=kWeights)[0], 16 times
};

const std::vector<int> kBits = {1, 2, 5, 8, 13, 16, 31, 32, 33, 40, 47, 53, 63, 64};
const std::vector<std::pair<std::int64_t, std::int64_t>> kRanges = {
    {0, 0},
    {0, 1},
    {1, 8},
    {8192, 30720},
    {-5, 5},
    {1, std::int64_t{1} << 31},
    {1, std::int64_t{1} << 32},
    {1, (std::int64_t{1} << 32) + 1},
    {0, std::int64_t{1} << 62},
    {7, 7}};
const std::vector<double> kWeights = {0.1, 0.2, 0.05, 0.4, 0.25};

const std::vector<Known> kKnown = {
    {0U,
     {0x1.b0580f98a7dbep-1, 0x1.84129978f9c1ap-1, 0x1.aeaa51052e978p-2, 0x1.092178fb945a6p-2},
     {1U, 1U, 24U, 227U, 3445U, 2653U, 556019485U, 4146640122U, 2195908194U, 1011056493432U,
      116792117102137U, 8717165710927625U, 3302422582397125124U, 16448235973081859711U},
     {0, 1, 1, 16676, 3, 2087043558, 2046968325, 3900315156, 1284573236628236406, 7},
     {1, 9, 8, 5, 10, 2, 3, 7, 4, 0, 11, 6},
     {4, 4, 3, 1, 3, 3, 4, 2, 3, 3, 4, 3, 1, 4, 3, 1}},
    {1U,
     {0x1.132d8f91b7584p-3, 0x1.b1e2d5b3584f8p-1, 0x1.870d778409f13p-1, 0x1.0530d08f17f5cp-2},
     {0U, 2U, 27U, 205U, 6256U, 4135U, 547756574U, 506456969U, 6422844795U, 517326624931U,
      53427896765467U, 1891107552740886U, 4499683446528355980U, 16478790771768674216U},
     {0, 0, 5, 12055, 2, 1930549412, 901749038, 2095328387, 3991571645403398797, 7},
     {7, 11, 0, 8, 5, 6, 3, 10, 4, 1, 9, 2},
     {1, 4, 4, 1, 3, 3, 3, 4, 0, 0, 4, 3, 4, 0, 3, 3}},
    {42U,
     {0x1.4762f307200c5p-1, 0x1.99c6b5eeb2060p-6, 0x1.19a1491f589dcp-2, 0x1.c922b623b8c1cp-3},
     {1U, 0U, 0U, 189U, 2253U, 16049U, 479341423U, 599310825U, 3163119785U, 814655221101U,
      76754897461584U, 5318681714335618U, 293143515607798169U, 1728372192399379054U},
     {0, 0, 5, 16216, -2, 599310826, 3163119786, 1812140442, 864186096263678574, 7},
     {7, 5, 2, 8, 9, 6, 11, 3, 4, 0, 1, 10},
     {3, 0, 1, 1, 3, 3, 4, 0, 3, 0, 1, 3, 0, 1, 3, 3}},
    {4294967301U,
     {0x1.4218067c49768p-3, 0x1.21442cf1e9172p-2, 0x1.357affb575f81p-1, 0x1.dbe785ae59e00p-7},
     {0U, 1U, 9U, 227U, 4951U, 54743U, 31188864U, 1524997693U, 2696275445U, 1047016835254U,
      116208624958794U, 8772714067266337U, 6735952844881071559U, 17271556485204961280U},
     {0, 1, 5, 27998, -5, 1524997694, 2696275446, 3497239161, 1471338313233067832, 7},
     {9, 6, 8, 11, 3, 1, 10, 5, 0, 4, 7, 2},
     {1, 1, 3, 0, 3, 4, 4, 3, 3, 3, 4, 4, 2, 3, 4, 4}},
    {9223372036854775817U,
     {0x1.70b96ec7b64f0p-1, 0x1.ef67721ea0808p-1, 0x1.939da61425964p-2, 0x1.4045c3c1ed8a9p-1},
     {1U, 0U, 30U, 122U, 3228U, 10315U, 1343320306U, 129378890U, 7199791844U, 157664514325U,
      18314848858914U, 5856880918890672U, 2857369437307332147U, 13559046221669595150U},
     {0, 1, 7, 13349, 5, 129378891, 3045691670, 1108308771, 2857369437307332147, 7},
     {3, 4, 8, 9, 10, 0, 5, 2, 6, 7, 1, 11},
     {3, 4, 3, 3, 3, 3, 1, 3, 1, 1, 3, 3, 3, 4, 3, 4}},
};

/// Seed 42: getrandbits(1), getrandbits(2), … getrandbits(64) in one stream.
const std::vector<std::uint64_t> kAllBits = {1U,
                                             0U,
                                             0U,
                                             11U,
                                             8U,
                                             15U,
                                             28U,
                                             35U,
                                             377U,
                                             104U,
                                             1385U,
                                             3033U,
                                             7308U,
                                             8935U,
                                             2848U,
                                             38698U,
                                             55302U,
                                             8331U,
                                             15622U,
                                             98246U,
                                             458517U,
                                             975850U,
                                             4239227U,
                                             10100198U,
                                             890399U,
                                             37664518U,
                                             26687537U,
                                             192205051U,
                                             348904049U,
                                             753041955U,
                                             1170252923U,
                                             1801823908U,
                                             946785248U,
                                             6825844140U,
                                             29246281099U,
                                             51567519519U,
                                             24935803837U,
                                             118962602874U,
                                             151785220214U,
                                             236890980656U,
                                             1679148444259U,
                                             448122261369U,
                                             3341882896657U,
                                             6314017318807U,
                                             12102562833427U,
                                             18612686277123U,
                                             6115205051775U,
                                             129316009522128U,
                                             70272263011973U,
                                             1038415602523468U,
                                             177439609692435U,
                                             1320356922165489U,
                                             5662286581849394U,
                                             15950879833673594U,
                                             13029276619690689U,
                                             13855854739413439U,
                                             10023954183803376U,
                                             190596174753506713U,
                                             445643557048912526U,
                                             1135883078528750669U,
                                             1972228384002752305U,
                                             3995950625880289016U,
                                             3506045623077649104U,
                                             8363943803604256569U};

class PythonRandomTest : public ::testing::TestWithParam<Known> {};

INSTANTIATE_TEST_SUITE_P(Seeds, PythonRandomTest, ::testing::ValuesIn(kKnown),
                         [](const auto& param) {
                           return "seed" + std::to_string(param.param.seed);
                         });

TEST_P(PythonRandomTest, RandomIsCPythons) {
  PythonRandom random(GetParam().seed);
  for (const double expected : GetParam().random) EXPECT_EQ(random.random(), expected);
}

TEST_P(PythonRandomTest, GetrandbitsIsCPythons) {
  PythonRandom random(GetParam().seed);
  for (std::size_t i = 0; i < kBits.size(); ++i) {
    EXPECT_EQ(random.getrandbits(kBits[i]), GetParam().bits[i]) << kBits[i] << " bits";
  }
}

TEST_P(PythonRandomTest, RandintIsCPythons) {
  PythonRandom random(GetParam().seed);
  for (std::size_t i = 0; i < kRanges.size(); ++i) {
    EXPECT_EQ(random.randint(kRanges[i].first, kRanges[i].second), GetParam().randint[i]);
  }
}

TEST_P(PythonRandomTest, ShuffleIsCPythons) {
  PythonRandom random(GetParam().seed);
  std::vector<std::int64_t> values(12);
  std::iota(values.begin(), values.end(), 0);
  random.shuffle(values);
  EXPECT_THAT(values, ElementsAreArray(GetParam().shuffled));
}

TEST_P(PythonRandomTest, ChoicesIsCPythons) {
  PythonRandom random(GetParam().seed);
  std::vector<double> cumulative(kWeights.size());
  std::partial_sum(kWeights.begin(), kWeights.end(), cumulative.begin());
  for (const std::size_t expected : GetParam().chosen) {
    EXPECT_EQ(random.choice(cumulative), expected);
  }
}

TEST(PythonRandom, GetrandbitsOfEveryWidth) {
  PythonRandom random(42);
  for (int bits = 1; bits <= 64; ++bits) {
    EXPECT_EQ(random.getrandbits(bits), kAllBits[static_cast<std::size_t>(bits - 1)]) << bits;
  }
}

TEST(PythonRandom, LongStreamIsCPythons) {
  PythonRandom random(7);
  double sum = 0;
  for (int i = 0; i < 100000; ++i) sum += random.random();

  EXPECT_EQ(sum, 0x1.85dfef8e04527p+15);
  EXPECT_EQ(random.getrandbits(64), 7171595761944124589U);
}

TEST(PythonRandom, ShuffleOfNothingAndOfOneDrawsNothing) {
  PythonRandom random(3);
  std::vector<std::int64_t> none;
  std::vector<std::int64_t> one = {5};
  random.shuffle(none);
  random.shuffle(one);
  EXPECT_EQ(one.front(), 5);
  EXPECT_EQ(random.random(), PythonRandom(3).random());
}

TEST(PythonRandom, ChoiceNeverPassesTheEnd) {
  PythonRandom random(5);
  const std::vector<double> zeros = {0.0, 0.0, 0.0};
  EXPECT_EQ(random.choice(zeros), 2U) << "bisect stops at the last index";
  const std::vector<double> single = {1.0};
  EXPECT_EQ(random.choice(single), 0U);
}

TEST(PythonRandom, RefusesWhatPythonRefuses) {
  PythonRandom random(5);
  EXPECT_THROW(random.randint(3, 2), InternalError);
  EXPECT_THROW(random.getrandbits(0), InternalError);
  EXPECT_THROW(random.getrandbits(65), InternalError);
  EXPECT_THROW(random.choice({}), InternalError);
}

RC_GTEST_PROP(PythonRandom, RandintStaysInRange,
              (std::uint64_t seed, std::int32_t a, std::int32_t b)) {
  const std::int64_t low = std::min(a, b);
  const std::int64_t high = std::max(a, b);
  PythonRandom random(seed);
  for (int i = 0; i < 20; ++i) {
    const std::int64_t value = random.randint(low, high);
    RC_ASSERT(value >= low && value <= high);
  }
}

}  // namespace
}  // namespace longca
