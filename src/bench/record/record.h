#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/record/shared_json.h"
#include "bench/suite/case.h"
#include "core/status.h"

namespace longca {

inline constexpr int kRecordSchema = 1;

/// A GPU's clock and power while a cell was timed: three lists of one length.
struct DeviceTrace {
  std::vector<double> t_ms;  ///< since the first repetition, warm-up included
  std::vector<double> sm_clock_mhz;
  std::vector<double> power_w;

  bool operator==(const DeviceTrace&) const = default;
};

/// The outcome of one case: the unit of every output.
struct Record {
  Case c;
  Status status;
  /// By name (metrics.h). What was not measured is absent, never zero.
  std::map<std::string, double> metrics;
  std::vector<double> samples_ms;  ///< every timed repetition, in order; of the slowest rank
  /// The samples of each round, one worker process each (`--rounds`), in order; else empty.
  /// Together they are samples_ms.
  std::vector<std::vector<double>> rounds_ms;
  std::vector<double> rank_times_ms;  ///< over ranks: each one's median; else empty
  std::string stop;                   ///< "converged", "time_limit", or "" if nothing was timed
  SharedJson env;                     ///< machine, versions, commit, argv
  std::string at;                     ///< RFC 3339, when the record was made; "" if unknown
  /// Further facts about how the cell ran, in words: "lse": "not returned".
  std::map<std::string, std::string> notes;
  std::optional<DeviceTrace> trace;  ///< absent where nothing was sampled
  /// The keys of a file's record that are none of the above, as they were: a user's own columns.
  std::map<std::string, nlohmann::json> more;
};

/// A metric that is not finite has no JSON number: it is left out, and a note of its name says
/// "nan", "inf" or "-inf". A failure without a reason gets one that says so.
void to_json(nlohmann::json& json, const Record& record);
/// Throws InputError naming the key that is missing, of the wrong type or of a value that no run
/// writes, or the unknown schema.
void from_json(const nlohmann::json& json, Record& record);
/// The same of an object that is not needed any more.
Record to_record(nlohmann::json&& json);

/// The record as one line of a file, without the newline: "schema" first, bytes of texts that are
/// not UTF-8 replaced by U+FFFD.
std::string to_line(const Record& record);

/// Limits of the reader, far above what a run writes: it ends on a file without end.
inline constexpr std::size_t kMaxRecordBytes = std::size_t{64} << 20;     ///< one line
inline constexpr std::size_t kMaxRecordFileBytes = std::size_t{1} << 30;  ///< unpacked

/// A file's contents.
struct RecordFile {
  std::vector<Record> records;  ///< in file order; of several with one key the last one counts
  bool torn = false;            ///< the last line is the beginning of a record; it is left out
  std::size_t whole_bytes = 0;  ///< where the torn line begins, or the size of the file
};

/// Reads a .jsonl file, also one compressed by gzip. A file is a record file only if every line is
/// a record: throws InputError naming file, line and fault, SystemError for a file that cannot be
/// read. A torn last line is no fault.
RecordFile read_records(const std::filesystem::path& path);
/// The same from an open file, from its beginning; `name` is the file's in messages.
RecordFile read_records(int file, const std::string& name);
/// The same from text.
RecordFile parse_records(std::string_view text, const std::string& name);

/// One record per key, the last one, at the place of the key's first.
std::vector<Record> latest_records(std::span<const Record> records);
/// The same with other keys than those of the cases.
std::vector<Record> latest_records(std::span<const Record> records,
                                   const std::function<std::string(const Record&)>& key_of);

}  // namespace longca
