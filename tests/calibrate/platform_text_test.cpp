#include "calibrate/platform_text.h"

#include <gtest/gtest.h>

#include "calibrate/rounds.h"
#include "report/golden.h"

namespace longca::calibrate {
namespace {

TEST(PlatformText, Page) {
  testing::expect_golden(cost::to_toml(test_platform()), "calibrate_page.toml");
}

TEST(PlatformText, Measured) {
  testing::expect_golden(describe_platform(test_platform()), "calibrate_measured.txt");
}

TEST(PlatformText, MeasuredLinks) {
  testing::expect_golden(describe_platform(test_platform_of_links()), "calibrate_links.txt");
}

TEST(PlatformText, PageOfLinks) {
  testing::expect_golden(cost::to_toml(test_platform_of_links()), "calibrate_links_page.toml");
}

TEST(PlatformText, Check) {
  const cost::Platform page = test_platform();
  cost::Platform now = page;
  now.memory.bytes_per_second *= 0.9;
  now.launch->seconds_per_kernel *= 1.001;
  testing::expect_golden(describe_check("mine", check_figures(page, now, 0.03)),
                         "calibrate_check.txt");
}

TEST(PlatformText, CheckOfLinks) {
  const cost::Platform page = test_platform_of_links();
  cost::Platform now = page;
  now.links.bytes_per_second *= 0.8;
  for (const std::int64_t bytes : {16 << 20, 32 << 20}) {
    now.messages.at("nccl.ring").seconds.at(bytes) *= 1.3;
  }
  testing::expect_golden(describe_check("mine", check_figures(page, now, 0.03)),
                         "calibrate_check_links.txt");
}

}  // namespace
}  // namespace longca::calibrate
