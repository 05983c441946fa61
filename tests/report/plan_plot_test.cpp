#include "report/plan_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/expect_input_error.h"
#include "parallel/plan/sample_plans.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

void plot(const ParallelProblem& problem, const std::filesystem::path& file) {
  plot_plan(sample_plans(problem), 8, DType::float32, {.cells_per_ms = 128, .bytes_per_ms = 256},
            "a ring's plan", file);
}

TEST(PlanPlot, ShowsRanksStepsCellsAndBytes) {
  const TempDirectory folder;
  plot(sample_problem(3), folder / "a.svg");
  const std::string svg = read_file(folder / "a.svg");
  for (const char* text :
       {"a ring\u2019s plan", "rank 0", "rank 2", "step 3", "36 cells", "2 KiB"}) {
    EXPECT_THAT(svg, HasSubstr(text));
  }
  EXPECT_THAT(svg, Not(HasSubstr("rank 3")));
}

/// The dark blue of the first step's computation has white labels, its pale messages black ones.
TEST(PlanPlot, LabelsStandOutFromTheirBars) {
  const TempDirectory folder;
  plot(sample_problem(3), folder / "a.svg");
  const std::string svg = read_file(folder / "a.svg");
  const auto color_of = [&](const std::string& label) {
    const std::size_t begin = svg.rfind("<g ", svg.find(">" + label + "<"));
    return svg.substr(begin, svg.find('>', begin) - begin);
  };
  EXPECT_THAT(color_of("36 cells"), HasSubstr("fill=\"rgb(255,255,255)\""));
  EXPECT_THAT(color_of("2 KiB"), HasSubstr("fill=\"rgb(0,0,0)\""));
}

TEST(PlanPlot, DrawsOtherFormats) {
  const TempDirectory folder;
  plot(sample_problem(2), folder / "a.png");
  EXPECT_THAT(read_file(folder / "a.png"), StartsWith("\x89PNG"));
  plot(sample_problem(2), folder / "a.pdf");
  EXPECT_THAT(read_file(folder / "a.pdf"), StartsWith("%PDF-"));
}

TEST(PlanPlot, DrawsManyRanksWithoutLabels) {
  const TempDirectory folder;
  plot(sample_problem(40), folder / "a.svg");
  EXPECT_THAT(read_file(folder / "a.svg"), HasSubstr("rank 39"));
}

TEST(PlanPlot, DrawsPlansThatDoNothing) {
  const TempDirectory folder;
  ParallelProblem problem = sample_problem(1);
  problem.mask = Mask::from_slices(0, 0, {});
  problem.problem.tokens_q = problem.problem.tokens_k = 0;
  plot(problem, folder / "a.svg");
  EXPECT_THAT(read_file(folder / "a.svg"), HasSubstr("rank 0"));
}

TEST(PlanPlot, RefusesOtherSuffixes) {
  const TempDirectory folder;
  expect_input_error([&] { plot(sample_problem(2), folder / "a.gif"); }, "'.gif' is not");
}

}  // namespace
}  // namespace longca::testing
