#include "advise/needs.h"

#include <algorithm>
#include <vector>

#include "core/error.h"
#include "core/nearest.h"

namespace longca::advise {

std::span<const Need> need_table() {
  static const std::vector<Need> table = {
      {"lse", "returns no LSE", [](const Capabilities& c) { return c.returns_lse; }},
      {"gqa", "needs as many KV heads as query heads", [](const Capabilities& c) { return c.gqa; }},
      {"backward", "has no backward pass", [](const Capabilities& c) { return c.backward; }},
      {"deterministic", "has no backward pass that gives the same bits from call to call",
       [](const Capabilities& c) { return c.deterministic; }},
      {"accumulate", "cannot merge into given outputs",
       [](const Capabilities& c) { return c.accumulate; }},
      {"strided", "takes contiguous tensors only", [](const Capabilities& c) { return c.strided; }},
      {"parts", "has no backward pass that goes by the o and lse of more keys",
       [](const Capabilities& c) { return c.gradient_of_parts; }}};
  return table;
}

const Need& find_need(std::string_view name) {
  const auto found = std::ranges::find(need_table(), name, &Need::name);
  if (found != need_table().end()) return *found;
  std::vector<std::string> names;
  std::string list;
  for (const Need& need : need_table()) {
    names.push_back(need.name);
    list += (list.empty() ? "" : ", ") + need.name;
  }
  throw_input_error("unknown need '{}'{}; there are {}", name, suggestion(name, names), list);
}

}  // namespace longca::advise
