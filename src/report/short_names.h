#pragma once

#include <map>
#include <set>
#include <span>
#include <string>

#include "bench/record/record.h"

namespace longca {

/// Names of files without their hashes (mask/own_file.h), where only one is called so.
class NamesWithoutHash {
 public:
  void add(const std::string& name);
  /// Of a name that was added.
  void shorten(std::string& name) const;

 private:
  std::map<std::string, std::set<std::string>> by_short_;
};

/// Takes the hashes off the names of the user's own masks and lengths, for people to read: where
/// two files have one name, or something else is called so, they stay.
class ShortNames {
 public:
  ShortNames();
  void add(const Case& c);
  /// Of a case whose names were added.
  void shorten(Case& c) const;

 private:
  NamesWithoutHash masks_;
  NamesWithoutHash lengths_;
};

/// The same of all cases of the records.
void shorten_own_names(std::span<Record> records);

}  // namespace longca
