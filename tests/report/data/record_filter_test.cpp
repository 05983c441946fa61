#include "report/data/record_filter.h"

#include <gtest/gtest.h>

#include <set>

#include "bench/expect_input_error.h"
#include "report/sample_records.h"

namespace longca::testing {
namespace {

std::vector<Record> filtered(const std::vector<std::string>& arguments) {
  return filter_records(sample_records(), arguments);
}

std::set<std::string> masks_of(const std::vector<Record>& records) {
  std::set<std::string> masks;
  for (const Record& record : records) masks.insert(record.c.mask);
  return masks;
}

TEST(RecordFilter, KeepsTheValuesOfEveryAxis) {
  const auto records = filtered({"mask=causal_document, full", "tokens=4K"});
  EXPECT_EQ(masks_of(records), (std::set<std::string>{"causal_document", "full"}));
  for (const Record& record : records) EXPECT_EQ(record.c.tokens, 4096);
  EXPECT_FALSE(records.empty());
  EXPECT_EQ(filtered({}).size(), sample_records().size());
  EXPECT_EQ(filtered({"mask=all"}).size(), sample_records().size());
}

TEST(RecordFilter, RangesKeepWhatThereIsOfThem) {
  EXPECT_EQ(filtered({"tokens=512:8K:x2"}).size(), sample_records().size());
}

/// What one argument leaves says nothing of what the records have.
TEST(RecordFilter, TheOrderOfArgumentsDoesNotMatter) {
  EXPECT_TRUE(filtered({"mask=full", "mask=causal_document"}).empty());
  const auto masks = masks_of(filtered({"mask=full", "lengths=prolong64k"}));
  EXPECT_EQ(masks, masks_of(filtered({"lengths=prolong64k", "mask=full"})));
  EXPECT_EQ(masks, std::set<std::string>{"full"});
}

TEST(RecordFilter, CellsWithoutTheAxisStay) {
  std::vector<Record> records = sample_records();
  for (Record& record : records) {
    if (record.c.mask == "block_sparse") record.c.density = 0.5;
  }
  records.push_back(records.front());
  records.back().c.mask = "block_sparse";
  records.back().c.density = 0.25;
  const std::vector<std::string> arguments{"density=0.5"};
  EXPECT_EQ(filter_records(records, arguments).size(), records.size() - 1);
}

TEST(RecordFilter, NamesMayBeTheRecordsOwn) {
  std::vector<Record> records = sample_records();
  records[3].c.kernel = "of_a_plugin";
  const std::vector<std::string> arguments{"kernel=of_a_plugin"};
  EXPECT_EQ(filter_records(records, arguments).size(), 1U);
}

TEST(RecordFilter, WhatNoRecordHasIsRefusedWithWhatThereIs) {
  expect_input_error([] { filtered({"mask=causal_documents"}); },
                     "no record has mask 'causal_documents' (did you mean 'causal_document'?)");
  expect_input_error([] { filtered({"tokens=3000"}); }, "there are 1024, 4096");
  expect_input_error([] { filtered({"scheme=usp"}); }, "no record has the axis 'scheme'");
  expect_input_error([] { filtered({"mask"}); }, "'mask' is not AXIS=VALUES");
  expect_input_error([] { filtered({"maks=full"}); }, "unknown axis 'maks' (did you mean 'mask'?)");
  expect_input_error([] { filtered({"kernel="}); }, "kernel: a value of the list is empty");
}

}  // namespace
}  // namespace longca::testing
