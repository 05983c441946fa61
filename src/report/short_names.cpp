#include "report/short_names.h"

#include "mask/generators.h"
#include "mask/lengths.h"
#include "mask/own_file.h"

namespace longca {

void NamesWithoutHash::add(const std::string& name) {
  by_short_[std::string(without_hash(name))].insert(name);
}

void NamesWithoutHash::shorten(std::string& name) const {
  const std::string shorter(without_hash(name));
  if (by_short_.at(shorter).size() == 1) name = shorter;
}

ShortNames::ShortNames() {
  for (const MaskTraits& mask : mask_table()) masks_.add(mask.name);
  for (const std::string& name : length_distribution_names()) lengths_.add(name);
}

void ShortNames::add(const Case& c) {
  masks_.add(c.mask);
  if (c.lengths) lengths_.add(*c.lengths);
}

void ShortNames::shorten(Case& c) const {
  masks_.shorten(c.mask);
  if (c.lengths) lengths_.shorten(*c.lengths);
}

void shorten_own_names(std::span<Record> records) {
  ShortNames names;
  for (const Record& record : records) names.add(record.c);
  for (Record& record : records) names.shorten(record.c);
}

}  // namespace longca
