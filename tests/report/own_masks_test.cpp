#include "report/own_masks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "mask/own_file.h"
#include "report/html.h"
#include "report/sample_records.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// A record of a mask that this process has not read, as another process's run leaves it.
Record record_of_mask(const std::filesystem::path& file) {
  Record record = sample_records()[0];
  record.c.mask = read_own_file("mask", file, kMaxMaskBytes).name;
  record.c.tokens = 96;
  record.env.own()["masks"] = {{record.c.mask, file.string()}};
  return record;
}

TEST(OwnMasks, AreDrawnOnThePageLikeOthers) {
  const TempDirectory folder;
  write_file(folder / "drawn.json", R"({"tokens":96,"slices":[[0,96,0,7,"full"]]})");
  const Record record = record_of_mask(folder / "drawn.json");
  const std::string page = render_html(std::vector{record}, std::nullopt);
  EXPECT_THAT(page, HasSubstr(R"(<figure class="picture" data-mask="drawn.json")"));
  EXPECT_THAT(page, HasSubstr("96 tokens, 7.29 % allowed"));
  EXPECT_THAT(page, Not(HasSubstr("not drawn")));
}

TEST(OwnMasks, AFileThatIsGoneOrHasChangedIsNotDrawn) {
  const TempDirectory folder;
  write_file(folder / "changed.json", R"({"tokens":96,"slices":[[0,96,0,8,"full"]]})");
  write_file(folder / "gone.json", R"({"tokens":96,"slices":[[0,96,0,9,"full"]]})");
  const std::vector<Record> records{record_of_mask(folder / "changed.json"),
                                    record_of_mask(folder / "gone.json")};
  write_file(folder / "changed.json", R"({"tokens":96,"slices":[[0,96,0,10,"full"]]})");
  std::filesystem::remove(folder / "gone.json");
  EXPECT_TRUE(own_masks_of(records).empty());
  EXPECT_THAT(render_html(records, std::nullopt), HasSubstr("2 masks are not drawn"));
}

TEST(OwnMasks, AreFoundByTheNamesOfRecordsAndOfViews) {
  const TempDirectory folder;
  std::filesystem::create_directory(folder / "other");
  write_file(folder / "one.json", R"({"tokens":96,"slices":[[0,96,0,11,"full"]]})");
  write_file(folder / "two.json", R"({"tokens":96,"slices":[[0,96,0,12,"full"]]})");
  write_file(folder / "other" / "two.json", R"({"tokens":96,"slices":[[0,96,0,13,"full"]]})");
  const std::vector<Record> records{record_of_mask(folder / "one.json"),
                                    record_of_mask(folder / "two.json"),
                                    record_of_mask(folder / "other" / "two.json")};
  const auto masks = own_masks_of(records);
  ASSERT_EQ(masks.size(), 4U) << "two.json is the name of neither of two";
  EXPECT_EQ(masks.at("one.json"), masks.at(records[0].c.mask));
  EXPECT_EQ(masks.at(records[2].c.mask)->generated.mask.mean_area(), 96 * 13);
}

}  // namespace
}  // namespace longca::testing
