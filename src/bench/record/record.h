#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/suite/case.h"
#include "core/file_descriptor.h"
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
  std::vector<double> samples_ms;     ///< every timed repetition, in order; of the slowest rank
  std::vector<double> rank_times_ms;  ///< over ranks: each one's median; else empty
  std::string stop;                   ///< "converged", "time_limit", or "" if nothing was timed
  nlohmann::json env;                 ///< machine, versions, commit, argv
  std::string at;                     ///< RFC 3339, when the record was made
  /// Further facts about how the cell ran, in words: "lse": "not returned".
  std::map<std::string, std::string> notes;
  std::optional<DeviceTrace> trace;  ///< absent where nothing was sampled
};

/// A metric that is not finite has no JSON number: it is left out, and a note of its name says
/// "nan", "inf" or "-inf".
void to_json(nlohmann::json& json, const Record& record);
/// Throws InputError naming the key that is missing or of the wrong type, or the unknown schema.
void from_json(const nlohmann::json& json, Record& record);

/// The record as one line of a file, without the newline: "schema" first, bytes of texts that are
/// not UTF-8 replaced by U+FFFD.
std::string to_line(const Record& record);

/// Appends records to a .jsonl file, one line each, handed to the kernel before `append` returns.
/// Holds a lock on the file: a second writer gets an InputError.
class RecordWriter {
 public:
  enum class Mode {
    replace,  ///< empties the file; an existing one must be a record file (or empty)
    resume,   ///< keeps its records; cuts a torn last line off; starts a missing file
  };
  /// Throws InputError, and changes nothing, if the file cannot be written or holds something else.
  RecordWriter(std::filesystem::path path, Mode mode);

  /// Throws InputError if the disk is full or fails; the file then ends with the last whole record.
  void append(const Record& record);

 private:
  std::filesystem::path path_;
  FileDescriptor file_;
};

/// A file's contents.
struct RecordFile {
  std::vector<Record> records;  ///< in file order; of several with one key the last one counts
  bool torn = false;            ///< the last line was cut; it is left out
  std::size_t whole_bytes = 0;  ///< where the torn line begins, or the size of the file
};

/// Reads a .jsonl file, also one compressed by gzip. Throws InputError naming file, line and fault;
/// a torn last line is no fault.
RecordFile read_records(const std::filesystem::path& path);
/// The same from text; `name` is the file's in messages.
RecordFile parse_records(std::string_view text, const std::string& name);

/// One record per key, the last one, at the place of the key's first.
std::vector<Record> latest_records(std::span<const Record> records);

}  // namespace longca
