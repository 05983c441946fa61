#include "cost/platform.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/error.h"

namespace longca::cost {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The sentence that the default page is refused with when `from` is replaced by `to`.
std::string refusal(const std::string& from, const std::string& to) {
  std::string page = to_toml(default_platform());
  const std::size_t at = page.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  page.replace(at, from.size(), to);
  try {
    parse_platform(page, "p.toml");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(PlatformTest, HasTheFiguresOfItsPage) {
  const Platform& h200 = default_platform();
  EXPECT_EQ(h200.name, "h200");
  EXPECT_EQ(h200.device.sms, 132);
  EXPECT_EQ(h200.links.bytes_per_second, 378e9);
  EXPECT_EQ(h200.links.seconds_per_message, 9e-6);
  EXPECT_EQ(h200.kernel.backward.row_term_bytes_per_second, 4.1e12);
  EXPECT_EQ(h200.slice.forward.pair_tile_share, 0.975);
  EXPECT_EQ(h200.slice.backward.chunk_visits, 256);
  EXPECT_EQ(h200.slice.backward.min_chunks, 1.5);
  EXPECT_EQ(h200.slice.backward.min_chunks_in_step, 2.5);
  EXPECT_EQ(h200.slice.backward.few_rows_min_keys, 1.5);
  EXPECT_EQ(h200.slice.backward.kept_cache_share, 0.8);
  EXPECT_EQ(h200.mma.backward.cta_overhead_tiles, 2);
  EXPECT_EQ(h200.mma.backward.min_parts_gain, 1.03);
}

/// So `to_toml` writes what a person would read, and nothing of a page is lost.
TEST(PlatformTest, PagesAreWhatIsWrittenOfThem) {
  for (const std::string& name : platform_names()) {
    const std::string path = std::string(LONGCA_PLATFORMS) + "/" + name + ".toml";
    EXPECT_EQ(to_toml(load_platform(path)), text_of(path)) << name;
    EXPECT_EQ(load_platform(path), load_platform(name));
    EXPECT_EQ(load_platform(name).name, name);
  }
}

TEST(PlatformTest, AnyPlatformComesBack) {
  Platform platform = default_platform();
  platform.description = "  two  spaces, \"quotes\", a \\ and\na line; µ " + std::string(300, 'x') +
                         " " + std::string(90, 'y') + "  z \\";
  for (const double value : {1.0, 12.5, 999999.0, 1e6, 1.25e7, 123456789.0, 1e-3, 9.99e-4, 0.1,
                             1.0 / 3, 7e-5, 5e-324, 1.7976931348623157e308}) {
    platform.links.bytes_per_second = value;
    platform.kernel.forward.keys_per_row = value;
    EXPECT_EQ(parse_platform(to_toml(platform), "p.toml"), platform) << value;
  }
}

/// A platform with all parts that a page may lack.
Platform with_all_parts() {
  Platform platform = default_platform();
  platform.kind = "cpu";
  platform.card = "AMD EPYC 9R14";
  platform.product = {"here", 1e12, 0.9e12};
  platform.launch = {"here", 1.5e-6};
  platform.rates["fa3"].forward = {"here", 600e12, 100, 10e-6};
  platform.rates["fa3"].backward = {"here", 500e12, 150, 20e-6};
  platform.rates["of one pass"].forward = {"here", 1e12, 1, 1e-6};
  platform.messages["mpi.ring"] = {"here", {{1024, 1e-6}, {67108864, 7e-3}}};
  platform.spread = {{"memory.bytes_per_second", 0.012},
                     {"rates.of one pass.forward.keys_per_row", 0},
                     {"messages.mpi.ring.1024", 0.5}};
  return platform;
}

TEST(PlatformTest, PartsThatAPageMayLackComeBack) {
  const Platform platform = with_all_parts();
  EXPECT_EQ(parse_platform(to_toml(platform), "p.toml"), platform);
  EXPECT_EQ(default_platform().kind, "cuda");
  EXPECT_FALSE(default_platform().product || default_platform().launch);
}

TEST(PlatformTest, FiguresAreListedByTheirKeys) {
  const std::vector<Figure> figures = figures_of(with_all_parts());
  const auto value = [&](const std::string& key) {
    const auto found = std::ranges::find(figures, key, &Figure::key);
    return found == figures.end() ? 0 : found->value;
  };
  EXPECT_EQ(value("device.sms"), 132);
  EXPECT_EQ(value("memory.bytes_per_second"), 3.5e12);
  EXPECT_EQ(value("rates.fa3.backward.keys_per_row"), 150);
  EXPECT_EQ(value("messages.mpi.ring.67108864"), 7e-3);
}

std::string refusal_with(const std::string& added) {
  try {
    parse_platform(to_toml(default_platform()) + added, "p.toml");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(PlatformTest, RefusesPartsThatAreNotWhole) {
  EXPECT_THAT(refusal_with("[launch]\nmeasured = \"x\"\n"),
              HasSubstr("'launch.seconds_per_kernel' is missing: a number above 0"));
  EXPECT_THAT(refusal_with("[launch]\nmeasured = \"x\"\nseconds_per_kernal = 1e-6\n"),
              HasSubstr("did you mean 'launch.seconds_per_kernel'?"));
  EXPECT_THAT(refusal_with("[rates.fa3.sideways]\nflops_per_second = 1\n"),
              HasSubstr("unknown key 'rates.fa3.sideways.flops_per_second'"));
  EXPECT_THAT(refusal_with("[rates.fa3.forward]\nflops_per_second = 1\n"),
              HasSubstr("'rates.fa3.forward.measured' is missing: a text"));
  EXPECT_THAT(refusal_with("[messages.ring]\nmeasured = \"x\"\n1K = 2e-6\n"),
              HasSubstr("unknown key 'messages.ring.1K'"));
  EXPECT_THAT(refusal_with("[spread]\n\"memory.bytes_per_secnd\" = 0.1\n"),
              AllOf(HasSubstr("is the spread of no figure"),
                    HasSubstr("did you mean 'memory.bytes_per_second'?")));
  EXPECT_THAT(refusal_with("[spread]\n\"memory.bytes_per_second\" = -0.1\n"),
              HasSubstr("is not a finite number of at least 0"));
  EXPECT_THAT(refusal("name = \"h200\"", "kind = \"tpu\"\nname = \"h200\""),
              HasSubstr("'kind' is 'tpu', not cuda or cpu"));
}

TEST(PlatformTest, NumbersAreWrittenAsPeopleDo) {
  Platform platform = default_platform();
  const auto written = [&](double value) {
    platform.memory.bytes_per_second = value;
    const std::string page = to_toml(platform);
    const std::string key = "bytes_per_second = ";
    const std::size_t at = page.find(key) + key.size();
    return page.substr(at, page.find('\n', at) - at);
  };
  EXPECT_EQ(written(3.5e12), "3.5e12");
  EXPECT_EQ(written(378e9), "378e9");
  EXPECT_EQ(written(20e-6), "20e-6");
  EXPECT_EQ(written(8e-6), "8e-6");
  EXPECT_EQ(written(0.05), "0.05");
  EXPECT_EQ(written(170), "170");
}

TEST(PlatformTest, RefusalsNameKeyValueAndLimit) {
  EXPECT_EQ(refusal("sms = 132", "sms = 0"),
            "p.toml:11:7: 'device.sms' is 0, not between 1 and 2147483647");
  EXPECT_THAT(refusal("sms = 132", "sms = 1.5"), HasSubstr("'device.sms' is not a whole number"));
  EXPECT_THAT(refusal("sms = 132", "sms = 4294967296"), HasSubstr("'device.sms' is 4294967296"));
  EXPECT_THAT(refusal("= 378e9", "= -1"),
              HasSubstr("'links.bytes_per_second' is -1, not a finite number above 0"));
  EXPECT_THAT(refusal("= 378e9", "= inf"), HasSubstr("'links.bytes_per_second' is inf"));
  EXPECT_THAT(refusal("= 378e9", "= nan"), HasSubstr("'links.bytes_per_second' is nan"));
  EXPECT_THAT(refusal("= 378e9", "= \"fast\""),
              HasSubstr("'links.bytes_per_second' is not a number"));
  EXPECT_THAT(refusal("= 378e9", "= true"), HasSubstr("'links.bytes_per_second' is not a number"));
  EXPECT_THAT(refusal("name = \"h200\"", "name = 200"), HasSubstr("'name' is no text"));
}

TEST(PlatformTest, RefusesWhatItDoesNotKnowOrMisses) {
  EXPECT_THAT(refusal("seconds_to_begin", "seconds_to_start"),
              AllOf(HasSubstr("unknown key 'links.seconds_to_start'"),
                    HasSubstr("did you mean 'links.seconds_to_begin'?")));
  EXPECT_THAT(refusal("seconds_to_begin = 20e-6", ""),
              HasSubstr("'links.seconds_to_begin' is missing: a number above 0"));
  EXPECT_THAT(refusal("sms = 132", ""), HasSubstr("'device.sms' is missing: a whole number"));
  EXPECT_THAT(refusal("\n\n# Device memory.", "\n[device.more]\n\n# Device memory."),
              HasSubstr("unknown key 'device.more'"));
  EXPECT_THAT(refusal("[node]", "[node"), HasSubstr("p.toml:"));
}

TEST(PlatformTest, RefusesWhatIsNestedTooDeepForItsParser) {
  std::string key;
  for (int i = 0; i < 50'000; ++i) key += "a.";
  EXPECT_THAT(refusal("[node]", key + "a = 1\n[node]"), HasSubstr("are nested deeper than 16"));
}

TEST(PlatformTest, IsFoundByTheWholeNameOfItsCard) {
  EXPECT_EQ(platform_of_card("NVIDIA H100 80GB HBM3").name, "h100");
  for (const char* other : {"H100", "NVIDIA H100 PCIe", "NVIDIA H100 80GB HBM3e"}) {
    EXPECT_EQ(&platform_of_card(other), &default_platform()) << other;
  }
  EXPECT_EQ(platform_of_card("NVIDIA H200").name, "h200");
  EXPECT_EQ(&platform_of_card("A card that nobody measured"), &default_platform());
  EXPECT_EQ(&platform_of_card(""), &default_platform());
}

TEST(PlatformTest, FindsPlatformsByNameOrFile) {
  EXPECT_THAT(platform_names(), testing::Contains("h200"));
  EXPECT_THROW(load_platform("no/such/file.toml"), InputError);
  try {
    load_platform("h20");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::StartsWith(
                                  "unknown platform 'h20' (did you mean 'h200'?): it is one of h"));
  }
}

}  // namespace
}  // namespace longca::cost
