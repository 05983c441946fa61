#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "bench/record/record.h"

namespace longca {

/// What the figures of a record depend on beside its case: figures of several origins are compared
/// knowingly or not at all.
struct Origin {
  std::string machine;  ///< "AMD EPYC 9R14, 2 cores, NVIDIA H200 (driver 550.54)"
  std::string build;    ///< "0.2.0, commit 1a2b3c4d5e6f with local changes, Release build"
  std::map<std::string, std::string> plugins;  ///< hash by file name
};

/// From a record's `env`, whatever is in it; "unknown" for what it does not say.
Origin origin_of(const nlohmann::json& env);

/// The `plugins` entry of `env`: a hash of each file's contents by its name. Throws InputError or
/// SystemError for a file that cannot be read.
nlohmann::json describe_plugins(std::span<const std::string> files);

/// The device of the record's case: "NVIDIA H200, driver 550.54" if it ran on a GPU, else "AMD EPYC
/// 9R14, 2 cores"; "" if the environment does not name it. Figures of two are never compared as if
/// they were of one.
std::string machine_of_case(const Record& record);

/// The same without the driver: "NVIDIA H200".
std::string processor_of_case(const Record& record);

/// The whole machine of a record, as in Origin: two may have the same card and driver.
std::string host_of(const Record& record);

/// One record per case, host and build, the last one, at the place of the first: what a run that
/// was resumed, or one that was repeated, says of its cells.
std::vector<Record> latest_of_each_build(std::span<const Record> records);
/// The same, whatever the build.
std::vector<Record> latest_of_each_host(std::span<const Record> records);
/// The same of one file's records, without a `timeout` that another build has tried again on the
/// same host, as --resume --across does.
std::vector<Record> latest_of_file(std::span<const Record> records);

/// A clause that names what differs, "the machine was A and is B"; empty where nothing does.
/// Plug-ins may have been added or left out, but not replaced.
std::string difference(const Origin& was, const Origin& is);

/// The origins of records and how many cells each has, in order of their first record.
struct OriginCells {
  Origin origin;
  std::size_t cells = 0;
};
std::vector<OriginCells> origins_of(std::span<const Record> records);

}  // namespace longca
