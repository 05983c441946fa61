#include "bench/suite/own_files.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "mask/own_lengths.h"
#include "mask/own_mask.h"

namespace longca {

namespace {

/// Reads a file by `add` unless its contents are known by that name.
Status read_as(const std::optional<std::filesystem::path>& file, const std::string& name,
               bool is_known, std::string (*add)(const std::filesystem::path& file)) {
  if (!file || is_known) return {};
  try {
    if (add(*file) == name) return {};
  } catch (const std::exception& error) {
    return Status::unavailable(error.what());
  }
  return Status::unavailable(fmt::format("{} has changed since the run began", file->string()));
}

}  // namespace

OwnFiles own_files(const Case& c) {
  OwnFiles files;
  const OwnLengths* lengths = c.lengths ? find_own_lengths(*c.lengths) : nullptr;
  if (lengths != nullptr) files.lengths = lengths->path;
  if (const OwnMask* mask = find_own_mask(c.mask)) files.mask = mask->path;
  return files;
}

Status read_own_files(const OwnFiles& files, const Case& c) {
  const std::string lengths = c.lengths.value_or("");
  Status status =
      read_as(files.lengths, lengths, find_own_lengths(lengths) != nullptr, add_own_lengths);
  if (!status.ok()) return status;
  return read_as(files.mask, c.mask, find_own_mask(c.mask) != nullptr, add_own_mask);
}

void to_json(nlohmann::json& json, const OwnFiles& files) {
  json = nlohmann::json::object();
  if (files.lengths) json["lengths"] = files.lengths->string();
  if (files.mask) json["mask"] = files.mask->string();
}

void from_json(const nlohmann::json& json, OwnFiles& files) {
  if (json.contains("lengths")) files.lengths = json.at("lengths").get<std::string>();
  if (json.contains("mask")) files.mask = json.at("mask").get<std::string>();
}

}  // namespace longca
