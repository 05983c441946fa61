#include "mask/own_lengths.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/stat.h>

#include <numeric>

#include "core/error.h"
#include "core/python_random.h"
#include "mask/error_of.h"
#include "mask/generators.h"
#include "mask/lengths.h"
#include "mask/own_file.h"
#include "mask/range.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string error_of_text(const std::string& text) {
  return error_of([&] { parse_lengths(text, "d.txt"); });
}

TEST(OwnLengths, AreSeparatedByWhiteSpaceOrCommas) {
  EXPECT_THAT(parse_lengths("5\n7\n", "d"), ElementsAre(5, 7));
  EXPECT_THAT(parse_lengths("5, 7,\r\n\t9  1073741824", "d"), ElementsAre(5, 7, 9, kMaxTokens));
}

TEST(OwnLengths, ErrorsNameFileLineValueAndLimit) {
  EXPECT_EQ(error_of_text("5\n\n6 12x\n"),
            "d.txt:3: '12x' is no document's length: a whole number from 1 to 1073741824");
  EXPECT_THAT(error_of_text("0"), HasSubstr("d.txt:1: '0' is no document's length"));
  EXPECT_THAT(error_of_text("4\n-4"), HasSubstr("d.txt:2: '-4'"));
  EXPECT_THAT(error_of_text("1073741825"), HasSubstr("'1073741825'"));
  EXPECT_THAT(error_of_text("99999999999999999999999"), HasSubstr("'99999999999999999999999'"));
  EXPECT_THAT(error_of_text("1.5"), HasSubstr("'1.5'"));
  EXPECT_THAT(error_of_text(std::string("1\0b", 3)),
              HasSubstr("'1\\x00b' is no document's length"));
  EXPECT_THAT(error_of_text(std::string(1000, '9')), HasSubstr("'" + std::string(40, '9') + "'"));
  EXPECT_EQ(error_of_text(" ,\n"), "d.txt has no document length");
}

/// A .npy as NumPy writes it.
template <typename Element>
std::string npy(const std::string& type, const std::vector<Element>& values,
                const std::string& shape = "") {
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                   type, shape.empty() ? fmt::format("{},", values.size()) : shape);
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string text("\x93NUMPY\x01\x00", 8);
  text += static_cast<char>(header.size() & 0xff);
  text += static_cast<char>(header.size() >> 8);
  text += header;
  text.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Element));
  return text;
}

TEST(OwnLengths, AreReadFromNumPyToo) {
  EXPECT_THAT(parse_lengths(npy<std::int64_t>("<i8", {3, 1L << 30}), "d"),
              ElementsAre(3, kMaxTokens));
  EXPECT_THAT(parse_lengths(npy<std::uint32_t>("<u4", {3, 4}), "d"), ElementsAre(3, 4));
  const auto error_of_npy = [](const std::string& bytes) {
    return error_of([&] { parse_lengths(bytes, "d.npy"); });
  };
  EXPECT_EQ(error_of_npy(npy<std::int32_t>("<i4", {3, -1})),
            "d.npy: element 1: '-1' is no document's length: a whole number from 1 to 1073741824");
  EXPECT_THAT(error_of_npy(npy<double>("<f8", {3})),
              HasSubstr("int32, int64, uint32 or uint64, not '<f8'"));
  EXPECT_THAT(error_of_npy(npy<double>("<M8[ns]", {3})), HasSubstr(", not '<M8[ns]'"));
  EXPECT_THAT(error_of_npy(npy<double>("|O", {3})), HasSubstr(", not '|O'"));
  EXPECT_THAT(error_of_npy(npy<std::int32_t>("<i4", {3, 4}, "1, 2")), HasSubstr("one dimension"));
  EXPECT_THAT(error_of_npy(npy<std::int32_t>("<i4", {3, 4}, "3,")),
              HasSubstr("3 lengths of 4 bytes are announced, and 8 bytes follow"));
  const std::string whole = npy<std::int32_t>("<i4", {3, 4});
  for (std::size_t size = 6; size < whole.size(); ++size) {
    EXPECT_NE(error_of_npy(whole.substr(0, size)), "no InputError") << size << " bytes";
  }
}

TEST(OwnLengths, OfOtherContentsHaveAnotherName) {
  const TempDirectory folder;
  write_file(folder / "my docs.txt", "100 200");
  const std::string name = add_own_lengths(folder / "my docs.txt");
  EXPECT_EQ(without_hash(name), "my_docs.txt");
  EXPECT_EQ(add_own_lengths(folder / "my docs.txt"), name);
  write_file(folder / "my docs.txt", "100 201");
  const std::string other = add_own_lengths(folder / "my docs.txt");
  EXPECT_NE(other, name);
  EXPECT_THAT(find_own_lengths(name)->lengths, ElementsAre(100, 200));
  EXPECT_THAT(find_own_lengths(other)->lengths, ElementsAre(100, 201));
  EXPECT_EQ(find_own_lengths("my_docs.txt"), nullptr);
  EXPECT_EQ(without_hash("prolong64k"), "prolong64k");
}

TEST(OwnLengths, FillTheSequenceInTheirOrderWithoutDraws) {
  const TempDirectory folder;
  write_file(folder / "d.txt", "100 200 300");
  const std::string name = add_own_lengths(folder / "d.txt");
  PythonRandom random(1);
  EXPECT_THAT(sample_lengths(name, 600, random), ElementsAre(100, 200, 300));
  EXPECT_THAT(sample_lengths(name, 250, random), ElementsAre(100, 150));
  EXPECT_THAT(sample_lengths(name, 0, random), ElementsAre());
  EXPECT_EQ(random.randint(1, 1 << 20), PythonRandom(1).randint(1, 1 << 20));
  EXPECT_EQ(error_of([&] { sample_lengths(name, 601, random); }),
            "the sequence has 601 tokens, and the 3 documents of lengths d.txt have 600");
  EXPECT_THAT(error_of([&] { sample_lengths("e.txt-0123456789abcdef", 5, random); }),
              HasSubstr("were not read: give lengths=FILE"));
}

TEST(OwnLengths, MakeTheMasksWithDocuments) {
  const TempDirectory folder;
  write_file(folder / "d.txt", "3 5");
  MaskSpec spec;
  spec.lengths = add_own_lengths(folder / "d.txt");
  spec.tokens = 8;
  for (const MaskTraits& mask : mask_table()) {
    if (!mask.uses_lengths) continue;
    spec.name = mask.name;
    EXPECT_THAT(generate_mask(spec).lengths, ElementsAre(3, 5)) << mask.name;
  }
  spec.name = "document";
  EXPECT_EQ(generate_mask(spec).mask.mean_area(), 3 * 3 + 5 * 5);
}

TEST(OwnFile, IsRegularAndBounded) {
  const TempDirectory folder;
  EXPECT_THAT(error_of([&] { add_own_lengths(folder / "none.txt"); }), HasSubstr("none.txt"));
  EXPECT_THAT(error_of([&] { add_own_lengths(folder.path()); }), HasSubstr("is no regular file"));
  EXPECT_THAT(error_of([&] { add_own_lengths("/dev/zero"); }),
              HasSubstr("lengths '/dev/zero' is no regular file"));
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(error_of([&] { add_own_lengths(folder / "pipe"); }), HasSubstr("no regular file"));
  write_file(folder / "large.txt", std::string(kMaxLengthsBytes + 1, ' '));
  EXPECT_THAT(error_of([&] { add_own_lengths(folder / "large.txt"); }),
              HasSubstr("too large: the maximum is 64 MiB"));
}

RC_GTEST_PROP(OwnLengths, AnyBytesAreLengthsOrAnInputError, (const std::string& bytes, bool npy)) {
  try {
    const auto lengths = parse_lengths((npy ? "\x93NUMPY" : "") + bytes, "d");
    RC_ASSERT(!lengths.empty());
  } catch (const InputError&) {
    RC_SUCCEED("refused");
  }
}

}  // namespace
}  // namespace longca::testing
