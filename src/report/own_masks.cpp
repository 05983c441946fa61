#include "report/own_masks.h"

#include <exception>
#include <nlohmann/json.hpp>
#include <set>

#include "report/short_names.h"

namespace longca {
namespace {

/// Where a run read the mask; "" if its record does not say.
std::string path_of_mask(const Record& record) {
  const nlohmann::json::json_pointer place = nlohmann::json::json_pointer("/masks") / record.c.mask;
  if (!record.env->is_object() || !record.env->contains(place)) return "";
  const nlohmann::json& path = record.env->at(place);
  return path.is_string() ? path.get<std::string>() : "";
}

/// nullptr if the mask cannot be read, or has other contents than when it was measured.
const OwnMask* own_mask_of(const Record& record) {
  if (const OwnMask* known = find_own_mask(record.c.mask)) return known;
  const std::string path = path_of_mask(record);
  if (path.empty()) return nullptr;
  try {
    add_own_mask(path);
  } catch (const std::exception&) {
    return nullptr;  // the page says how many masks are not drawn
  }
  return find_own_mask(record.c.mask);
}

}  // namespace

std::map<std::string, const OwnMask*> own_masks_of(std::span<const Record> records) {
  std::map<std::string, const OwnMask*> masks;
  std::set<std::string> tried;
  std::vector<Record> shortened(records.begin(), records.end());
  shorten_own_names(shortened);
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (!tried.insert(records[i].c.mask).second) continue;
    if (const OwnMask* mask = own_mask_of(records[i])) {
      masks[records[i].c.mask] = masks[shortened[i].c.mask] = mask;
    }
  }
  return masks;
}

}  // namespace longca
