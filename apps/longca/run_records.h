#pragma once

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "bench/record/record.h"
#include "bench/suite/suite.h"
#include "run_verbs.h"

// What a run has recorded, in this process or an earlier one.

namespace longca {

/// The records of a run: those that the file had, and what rounds add to them.
class RunRecords {
 public:
  explicit RunRecords(std::vector<Record> finished);

  /// Whether the cell has to run in this round, counted from 0: it has not failed and lacks it.
  bool lacks(const Case& c, int round) const;
  /// The cell's record, now with one round more.
  const Record& add(const Record& round, bool in_rounds);
  const std::vector<Record>& all() const { return records_; }

  /// To be called once what was added is in the file.
  void note_written();
  /// How many cells the file has records of, and rounds of cells; for any thread.
  std::size_t written() const { return written_; }
  std::size_t measured() const { return measured_; }

 private:
  std::vector<Record> records_;
  std::atomic<std::size_t> written_ = 0;
  std::atomic<std::size_t> measured_ = 0;
  std::unordered_map<std::string, std::size_t> places_;
};

/// The `env` of this run's records.
nlohmann::json run_environment(const RecordArguments& arguments, const Suite& suite);

/// The file's records of these cases, without those that are tried again: their time limit was
/// lower. Throws InputError for records of another origin, unless --across was given.
std::vector<Record> read_finished(const std::filesystem::path& path,
                                  const RecordArguments& arguments, const nlohmann::json& env,
                                  const RunLimits& limits, std::span<const Case> cases);

}  // namespace longca
