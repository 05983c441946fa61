#include "report/plots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "bench/expect_input_error.h"
#include "report/gnuplot.h"
#include "report/mask_picture.h"
#include "report/plot_parts.h"
#include "report/sample_records.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// Whether a file is a picture of what its suffix says, with something in it.
void expect_picture(const fs::path& file) {
  const std::string text = read_file(file);
  EXPECT_GT(text.size(), 2000U) << file;
  if (file.extension() == ".png") {
    EXPECT_THAT(text, StartsWith("\x89PNG\r\n\x1a\n"));
    EXPECT_THAT(text, HasSubstr("IEND")) << file;
  } else if (file.extension() == ".pdf") {
    EXPECT_THAT(text, StartsWith("%PDF-"));
    EXPECT_THAT(text, HasSubstr("%%EOF"));
  } else {
    EXPECT_THAT(text, HasSubstr("<svg"));
    EXPECT_THAT(text, HasSubstr("</svg>"));
  }
}

/// The PATH of this process while it lives.
class PathVariable {
 public:
  explicit PathVariable(const std::string& value) : before_(std::getenv("PATH")) {
    ::setenv("PATH", value.c_str(), 1);
  }
  ~PathVariable() { ::setenv("PATH", before_.c_str(), 1); }
  PathVariable(const PathVariable&) = delete;
  PathVariable& operator=(const PathVariable&) = delete;

 private:
  std::string before_;
};

TEST(Plots, AFigurePerPassInThreeFormats) {
  const TempDirectory folder;
  const auto files = write_plots(sample_records(), folder / "plots");
  std::vector<std::string> names;
  for (const fs::path& file : files) {
    names.push_back(file.filename());
    expect_picture(file);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"forward.png", "forward.svg", "forward.pdf",
                                             "backward.png", "backward.svg", "backward.pdf"}));
}

TEST(Plots, ShowWhatTheRecordsSay) {
  const TempDirectory folder;
  write_plots(sample_records(), folder.path());
  const std::string svg = read_file(folder / "backward.svg");
  for (const char* text : {"causal_document", "block_sparse", "X unsupported", "E out of memory",
                           "W wrong", "N unavailable", "GFLOP/s", "heads 8:2", ">4K<"}) {
    EXPECT_THAT(svg, HasSubstr(text));
  }
}

TEST(Plots, ASettingOfItsOwnGetsAFileOfItsOwn) {
  const TempDirectory folder;
  std::vector<Record> records = {sample_records()[0], sample_records()[0]};
  records[1].c.dtype = DType::bfloat16;
  records[1].c.heads_k = 4;
  const auto files = write_plots(records, folder.path());
  ASSERT_EQ(files.size(), 6U);
  EXPECT_EQ(files[3].filename(), "forward-heads-8-4-dtype-bfloat16.png");
}

TEST(Plots, NamesCannotSteerGnuplot) {
  const TempDirectory folder;
  const std::string canary = (folder / "canary").string();
  std::vector<Record> records = {sample_records()[0]};
  records[0].c.kernel = "'; system('touch " + canary + "') #`touch " + canary + "`\n\"@x";
  write_plots(records, folder.path());
  EXPECT_FALSE(fs::exists(canary));
  EXPECT_THAT(read_file(folder / "forward.svg"), HasSubstr("system("));
}

TEST(Plots, RecordsWithoutAnyNumberAreDrawnToo) {
  const TempDirectory folder;
  std::vector<Record> records = {sample_records()[2]};
  ASSERT_EQ(records[0].status.code, StatusCode::unsupported);
  for (const fs::path& file : write_plots(records, folder.path())) expect_picture(file);
}

TEST(Plots, PlacesThatCannotBeWrittenAreNamed) {
  const TempDirectory folder;
  write_file(folder / "file", "");
  expect_input_error([&] { write_plots(sample_records(), folder / "file"); }, "cannot");
  expect_input_error([&] { write_plots(sample_records(), folder / "file/plots"); }, "file/plots");
}

TEST(Plots, WithoutGnuplotTheErrorNamesThePackage) {
  const TempDirectory folder;
  const PathVariable path(folder.path());
  expect_input_error([&] { write_plots(sample_records(), folder.path()); }, "gnuplot-nox");
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(Gnuplot, ComplaintsAreReported) {
  const TempDirectory folder;
  expect_input_error([&] { draw_with_gnuplot(folder / "a.png", 100, 100, "plot nonsense(x)\n"); },
                     "gnuplot failed: ");
}

TEST(Gnuplot, StartsWithoutTheUsersFilesAndVariables) {
  const TempDirectory folder;
  const std::string canary = (folder / "canary").string();
  write_file(folder / ".gnuplot", "set print '" + canary + "'\nprint 'read'\n");
  const std::string home = std::getenv("HOME") != nullptr ? std::getenv("HOME") : "";
  ::setenv("HOME", folder.path().c_str(), 1);
  ::setenv("GNUPLOT_PDFDIR", "seen", 1);
  draw_with_gnuplot(folder / "a.svg", 100, 100,
                    "set label 1 \"<\".system('echo $GNUPLOT_PDFDIR').\">\" at 0,0\nplot x\n");
  ::unsetenv("GNUPLOT_PDFDIR");
  ::setenv("HOME", home.c_str(), 1);
  EXPECT_FALSE(fs::exists(canary));
  const std::string picture = read_file(folder / "a.svg");
  EXPECT_THAT(picture, HasSubstr("</svg>"));
  EXPECT_THAT(picture, Not(HasSubstr("seen")));
}

TEST(Gnuplot, AFigureThatFailsReplacesNothing) {
  const TempDirectory folder;
  write_file(folder / "a.png", "before");
  expect_input_error([&] { draw_with_gnuplot(folder / "a.png", 100, 100, "plot nonsense(x)\n"); },
                     "gnuplot failed: ");
  EXPECT_EQ(read_file(folder / "a.png"), "before");
}

TEST(Gnuplot, QuotesTakeAnyText) {
  EXPECT_EQ(gnuplot_quoted("it's"), "'it\u2019s'");
  EXPECT_EQ(gnuplot_quoted("a\nb`c`\\"), "'a\\nb`c`\\'");
}

/// The sample's cells of one mask, forward, at more and more lengths.
std::vector<Record> records_at_lengths(const std::string& mask, int lengths) {
  std::vector<Record> records;
  for (const Record& record : sample_records()) {
    if (record.c.mask != mask || record.c.tokens != 1024 || record.c.pass != Pass::forward)
      continue;
    for (int i = 0; i < lengths; ++i) {
      records.push_back(record);
      records.back().c.tokens = 1024 * (i + 1);
    }
  }
  return records;
}

TEST(Figure, ManyBarsLeaveOutTheKernelsWithoutANumberAndNameThem) {
  const auto panel_at = [](int lengths) {
    return make_figures(make_view(records_at_lengths("full", lengths))).front().panels.front();
  };
  const FigurePanel few = panel_at(8);
  EXPECT_TRUE(few.absent.empty());
  EXPECT_EQ(few.bars.size(), 3U * 8);
  const FigurePanel many = panel_at(9);
  ASSERT_EQ(many.absent.size(), 1U);
  EXPECT_EQ(many.absent[0].kernel, 2U);  // block_sparse
  EXPECT_EQ(many.absent[0].statuses, std::set<StatusCode>{StatusCode::unsupported});
  EXPECT_EQ(many.bars.size(), 2U * 9);
  EXPECT_GT(many.bar_width, few.bar_width);
}

TEST(RanksPlots, ThreeFiguresPerMaskAndPass) {
  const TempDirectory folder;
  std::vector<std::string> names;
  for (const fs::path& file : write_plots(over_ranks_records(), folder.path())) {
    expect_picture(file);
    if (file.extension() == ".svg") names.push_back(file.stem());
  }
  std::vector<std::string> wanted;
  for (const std::string mask : {"full", "causal_document"}) {
    for (const std::string pass : {"forward", "backward"}) {
      for (const char* kind : {"tflops", "exposed", "error"}) {
        wanted.push_back("cp-" + mask + '-' + pass + '-' + kind);
      }
    }
  }
  EXPECT_EQ(names, wanted);
}

TEST(RanksPlots, ShowWhatTheRecordsSay) {
  const TempDirectory folder;
  std::vector<Record> records = over_ranks_records();
  const std::vector<Record> single = one_device_records();
  records.insert(records.end(), single.begin(), single.end());
  write_plots(records, folder.path());
  const std::string svg = read_file(folder / "cp-full-backward-tflops.svg");
  for (const char* text : {"full, backward pass", "ring_p2p balanced", "ring_p2p zigzag", "ulysses",
                           "one device", "1K tokens per rank", "TFLOP/s per rank",
                           "no number: ulysses 4 X; usp 4 C", "X unsupported", "C crash"}) {
    EXPECT_THAT(svg, HasSubstr(text));
  }
  EXPECT_TRUE(fs::exists(folder / "backward.svg"));
}

TEST(RanksPlots, ManyKernelsHaveAShortLegend) {
  const TempDirectory folder;
  write_plots(two_kernels_records(), folder.path());
  const std::string full = read_file(folder / "cp-full-forward-tflops.svg");
  for (const char* text : {">ulysses<", ">ring_p2p<", ">usp<", ">flash<", ">naive peer<"}) {
    EXPECT_THAT(full, HasSubstr(text));
  }
  const std::string document = read_file(folder / "cp-causal_document-forward-tflops.svg");
  EXPECT_THAT(document, HasSubstr("no number: flash X (all 3 schemes)"));
  EXPECT_THAT(document, Not(HasSubstr("ulysses flash")));
}

TEST(PlotHead, WrapsWordsAndCutsTheEnd) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(wrapped_text("", 10, 2), Lines{""});
  EXPECT_EQ(wrapped_text("one two", 7, 2), Lines{"one two"});
  EXPECT_EQ(wrapped_text("one two three", 7, 2), (Lines{"one two", "three"}));
  EXPECT_EQ(wrapped_text("one two three four", 7, 2), (Lines{"one two", "three…"}));
  EXPECT_EQ(wrapped_text("ääää öööööööö", 7, 2), (Lines{"ääää", "öööööö…"}));
}

TEST(RanksPlots, NamesCannotSteerGnuplot) {
  const TempDirectory folder;
  const std::string canary = (folder / "canary").string();
  std::vector<Record> records = {over_ranks_records()[0]};
  records[0].c.scheme = "'; system('touch " + canary + "') #`touch " + canary + "`\n\"@x";
  records[0].c.kernel = *records[0].c.scheme;
  write_plots(records, folder.path());
  EXPECT_FALSE(fs::exists(canary));
  EXPECT_THAT(read_file(folder / "cp-full-forward-tflops.svg"), HasSubstr("system("));
}

TEST(Plots, NameTheKernelsLeftOut) {
  const TempDirectory folder;
  write_plots(records_at_lengths("full", 9), folder.path());
  EXPECT_THAT(read_file(folder / "forward.svg"), HasSubstr("no number: block_sparse X"));
}

TEST(Figure, MarksOfKernelsLeftOutAreExplained) {
  const auto figures = make_figures(make_view(records_at_lengths("full", 9)));
  EXPECT_TRUE(figures.front().shows(StatusCode::unsupported));
  EXPECT_FALSE(figures.front().shows(StatusCode::oom));
}

TEST(Figure, BarsStandSideBySideAndNeverOverlap) {
  const std::vector<Record> records = sample_records();
  for (const Figure& figure : make_figures(make_view(records))) {
    for (const FigurePanel& panel : figure.panels) {
      std::vector<double> places;
      for (const FigureBar& bar : panel.bars) places.push_back(bar.x);
      std::sort(places.begin(), places.end());
      for (std::size_t i = 1; i < places.size(); ++i) {
        EXPECT_GE(places[i] - places[i - 1], panel.bar_width - 1e-9);
      }
      EXPECT_GE(places.front() - panel.bar_width / 2, -0.5);
      EXPECT_LE(places.back() + panel.bar_width / 2,
                static_cast<double>(panel.tokens.size()) - 0.5);
    }
  }
}

TEST(MaskPlot, DrawsEveryMaskInEveryFormat) {
  const TempDirectory folder;
  const char* suffixes[] = {".png", ".svg", ".pdf"};
  int i = 0;
  for (const MaskTraits& mask : mask_table()) {
    MaskSpec spec;
    spec.name = mask.name;
    spec.tokens = 2048;
    spec.window = 200;
    spec.block_tokens = 128;
    const fs::path file = folder / (mask.name + suffixes[i++ % 3]);
    plot_mask(generate_mask(spec), spec, file);
    expect_picture(file);
  }
}

TEST(MaskPlot, DrawsMasksOfOneTokenAndNone) {
  const TempDirectory folder;
  for (const std::int64_t tokens : {0, 1}) {
    MaskSpec spec;
    spec.tokens = tokens;
    plot_mask(generate_mask(spec), spec, folder / "a.png");
    expect_picture(folder / "a.png");
  }
}

TEST(MaskPlot, TakesAnyFileName) {
  const TempDirectory folder;
  MaskSpec spec;
  spec.tokens = 64;
  const fs::path file = folder / "'it''s' `a` \"b\" \\ $c\n.png";
  plot_mask(generate_mask(spec), spec, file);
  expect_picture(file);
}

TEST(MaskPlot, NamesTheMaskTheTokensAndTheDensity) {
  const TempDirectory folder;
  MaskSpec spec;
  spec.tokens = 1024;
  plot_mask(generate_mask(spec), spec, folder / "a.svg");
  EXPECT_THAT(read_file(folder / "a.svg"), HasSubstr("causal · 1K tokens · 50.05 % allowed"));
}

TEST(MaskPlot, OtherSuffixesAndPlacesAreRefused) {
  const TempDirectory folder;
  MaskSpec spec;
  spec.tokens = 16;
  const GeneratedMask mask = generate_mask(spec);
  expect_input_error([&] { plot_mask(mask, spec, folder / "a.gif"); },
                     "'.gif' is not .png, .svg or .pdf");
  expect_input_error([&] { plot_mask(mask, spec, folder / "a"); }, "is not .png");
  expect_input_error([&] { plot_mask(mask, spec, folder / "no/a.png"); }, "No such file");
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

}  // namespace
}  // namespace longca::testing
