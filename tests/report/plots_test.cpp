#include "report/plots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "bench/expect_input_error.h"
#include "report/gnuplot.h"
#include "report/mask_picture.h"
#include "report/plot_parts.h"
#include "report/sample_records.h"
#include "report/sparse_records.h"
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

TEST(Plots, SpeedAndMemoryOfEachPassInThreeFormats) {
  const TempDirectory folder;
  const auto files = write_plots(sample_records(), folder / "plots");
  std::vector<std::string> names;
  for (const fs::path& file : files) {
    names.push_back(file.filename());
    if (file.extension() != ".html") expect_picture(file);
  }
  EXPECT_EQ(names, (std::vector<std::string>{
                       "forward.png", "forward.svg", "forward.pdf", "backward.png", "backward.svg",
                       "backward.pdf", "forward-memory.png", "forward-memory.svg",
                       "forward-memory.pdf", "backward-memory.png", "backward-memory.svg",
                       "backward-memory.pdf", "index.html"}));
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

TEST(Plots, NameTheMachineAndTheAxis) {
  std::vector<Record> records = sample_records();
  for (Record& record : records) record.env.own()["cpu"] = {{"model", "Example CPU"}};
  EXPECT_THAT(plots_of(records)[0].script.text, HasSubstr("'machine Example CPU'"));
  EXPECT_THAT(plots_of(records)[0].script.text, HasSubstr("set xlabel 'tokens'"));
  for (std::size_t i = 0; i < 3; ++i) {
    records.push_back(records[i]);
    records.back().env.own()["cpu"] = {{"model", "Other CPU"}};
  }
  // Each has figures of its own, which name it.
  const std::string text = plots_of(records)[0].script.text;
  EXPECT_THAT(text, HasSubstr("'machine Example CPU'"));
  EXPECT_THAT(text, Not(HasSubstr("Other CPU")));
}

TEST(Plots, DrawTheHintInSmallLetters) {
  const std::vector<Plot> plots = plots_of(over_ranks_records());
  ASSERT_EQ(plots[1].listed.stem, "cp-forward-exposed");
  EXPECT_THAT(plots[1].script.text, HasSubstr("set label 'Full colour: the steps of the slowest"));
  EXPECT_THAT(plots[1].script.text, HasSubstr(" font ',8' tc rgb '#606060'\n"));
}

TEST(Plots, ASettingOfItsOwnGetsAFileOfItsOwn) {
  const TempDirectory folder;
  std::vector<Record> records = {sample_records()[0], sample_records()[0]};
  records[1].c.dtype = DType::bfloat16;
  records[1].c.heads_k = 4;
  const auto files = write_plots(records, folder.path());
  ASSERT_EQ(files.size(), 2U * 2 * 3 + 1);
  EXPECT_EQ(files[3].filename(), "forward-heads-8-4-dtype-bfloat16.png");
}

TEST(Plots, AnIndexListsThem) {
  const TempDirectory folder;
  std::vector<Record> records = sample_records();
  for (Record& record : records) record.c.kernel += "<b>";
  records[0].env.own()["cpu"]["model"] = "<script>";
  const auto files = write_plots(records, folder.path());
  const std::string index = read_file(folder / "index.html");
  for (const fs::path& file : files) {
    if (file.extension() == ".html") continue;
    EXPECT_THAT(index, HasSubstr("href=\"" + file.filename().string() + "\""));
  }
  EXPECT_THAT(index, HasSubstr("<h1>Attention kernels on &lt;script&gt;"));
  EXPECT_THAT(index, HasSubstr("<h2>Forward: speed</h2>"));
  EXPECT_THAT(index, Not(HasSubstr("<script")));
}

TEST(Plots, TheIndexBeginsWithTheSchemes) {
  const TempDirectory folder;
  std::vector<Record> records = {one_device_records()[0], over_ranks_records()[0]};
  write_plots(records, folder.path());
  const std::string index = read_file(folder / "index.html");
  EXPECT_LT(index.find("href=\"cp-"), index.find("href=\"forward.svg\""));
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
  for (const fs::path& file : write_plots(records, folder.path())) {
    if (file.extension() != ".html") expect_picture(file);
  }
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

TEST(Gnuplot, AFigureWithoutEndIsGivenUp) {
  const TempDirectory folder;
  expect_input_error(
      [&] {
        draw_with_gnuplot(folder / "a.svg", 100, 100, "while (1) { x = 1 }\n",
                          std::chrono::milliseconds(300));
      },
      "gnuplot did not end within 0.3 s");
  EXPECT_FALSE(fs::exists(folder / "a.svg"));
}

TEST(Gnuplot, QuotesTakeAnyText) {
  EXPECT_EQ(gnuplot_quoted("it's"), "'it\u2019s'");
  EXPECT_EQ(gnuplot_quoted("a\nb`c`\\"), "'a\\nb`c`\\'");
  EXPECT_EQ(gnuplot_quoted("÷ dense, ü…"), "'÷ dense, ü…'");
  EXPECT_EQ(gnuplot_quoted("\u2e7f\u2e80\u4e2da\U0001f600"), "'\u2e7f??a?'");
}

TEST(Plots, OverRanksFiveQuantitiesOfEachPass) {
  const TempDirectory folder;
  std::vector<std::string> names;
  for (const fs::path& file : write_plots(over_ranks_records(), folder.path())) {
    if (file.extension() != ".html") expect_picture(file);
    if (file.extension() == ".svg") names.push_back(file.stem());
  }
  std::vector<std::string> wanted;
  for (const std::string pass : {"forward", "backward"}) {
    for (const char* kind : {"tflops", "exposed", "bytes", "imbalance", "error"}) {
      wanted.push_back("cp-" + pass + '-' + kind);
    }
  }
  EXPECT_EQ(names, wanted);
}

TEST(Plots, OverRanksShowWhatTheRecordsSay) {
  const TempDirectory folder;
  std::vector<Record> records = over_ranks_records();
  const std::vector<Record> single = one_device_records();
  records.insert(records.end(), single.begin(), single.end());
  write_plots(records, folder.path());
  const std::string svg = read_file(folder / "cp-backward-tflops.svg");
  for (const char* text :
       {"Backward: speed per rank", ">full<", "ring_p2p · balanced", "ring_p2p · zigzag", "ulysses",
        "one device", "1K tokens per rank", "TFLOP/s per rank", "X unsupported", "C crash"}) {
    EXPECT_THAT(svg, HasSubstr(text));
  }
  EXPECT_TRUE(fs::exists(folder / "backward.svg"));
}

TEST(Plots, BlockSparseBesideDense) {
  const TempDirectory folder;
  std::vector<Record> records = joined(sparse_records(), selected_records());
  std::erase_if(records, [](const Record& record) {
    return record.c.heads_k != 8 || record.c.pass != Pass::forward ||
           record.c.block.value_or(64) != 64;
  });
  write_plots(records, folder.path());
  const std::string time = read_file(folder / "sparse-forward-time-selection-random.svg");
  for (const char* text : {"time over density", "block_sparse, 32K tokens", "dense: fa3, 50.3 ms",
                           ">slice<", ">fastest dense kernel<"}) {
    EXPECT_THAT(time, HasSubstr(text));
  }
  const std::string mass = read_file(folder / "sparse-forward-mass-selection-scores.svg");
  for (const char* text : {">kept mass<", ">times dense speed<", "with selection and planning"}) {
    EXPECT_THAT(mass, HasSubstr(text));
  }
}

TEST(PlotHead, WrapsWordsAndCutsTheEnd) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(wrapped_text("", 10, 2), Lines{""});
  EXPECT_EQ(wrapped_text("one two", 7, 2), Lines{"one two"});
  EXPECT_EQ(wrapped_text("one two three", 7, 2), (Lines{"one two", "three"}));
  EXPECT_EQ(wrapped_text("one two three four", 7, 2), (Lines{"one two", "three…"}));
  EXPECT_EQ(wrapped_text("ääää öööööööö", 7, 2), (Lines{"ääää", "öööööö…"}));
}

TEST(Plots, SchemesCannotSteerGnuplot) {
  const TempDirectory folder;
  const std::string canary = (folder / "canary").string();
  std::vector<Record> records = {over_ranks_records()[0]};
  records[0].c.scheme = "'; system('touch " + canary + "') #`touch " + canary + "`\n\"@x";
  records[0].c.kernel = *records[0].c.scheme;
  write_plots(records, folder.path());
  EXPECT_FALSE(fs::exists(canary));
  EXPECT_THAT(read_file(folder / "cp-forward-tflops.svg"), HasSubstr("system("));
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
