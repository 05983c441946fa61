#include "report/short_names.h"

#include <map>
#include <set>
#include <string>

#include "mask/generators.h"
#include "mask/lengths.h"
#include "mask/own_file.h"

namespace longca {
namespace {

/// Names by what they are called without a hash.
class NamesWithoutHash {
 public:
  void add(const std::string& name) { by_short_[std::string(without_hash(name))].insert(name); }
  void shorten(std::string& name) const {
    const std::string shorter(without_hash(name));
    if (by_short_.at(shorter).size() == 1) name = shorter;
  }

 private:
  std::map<std::string, std::set<std::string>> by_short_;
};

}  // namespace

void shorten_own_names(std::span<Record> records) {
  NamesWithoutHash masks;
  NamesWithoutHash lengths;
  for (const MaskTraits& mask : mask_table()) masks.add(mask.name);
  for (const std::string& name : length_distribution_names()) lengths.add(name);
  for (const Record& record : records) {
    masks.add(record.c.mask);
    if (record.c.lengths) lengths.add(*record.c.lengths);
  }
  for (Record& record : records) {
    masks.shorten(record.c.mask);
    if (record.c.lengths) lengths.shorten(*record.c.lengths);
  }
}

}  // namespace longca
