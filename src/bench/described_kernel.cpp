#include "bench/described_kernel.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "core/error.h"

namespace longca {
namespace {

class DescribedKernel final : public Kernel {
 public:
  DescribedKernel(Capabilities capabilities, std::string version)
      : capabilities_(std::move(capabilities)), version_(std::move(version)) {}

  const Capabilities& capabilities() const override { return capabilities_; }
  Support supports(const Problem& problem, const Mask& mask) const override {
    return check_capabilities(capabilities_, problem, mask);
  }
  std::unique_ptr<Plan> plan(const Problem&, const Mask&) const override {
    throw InternalError("kernel " + capabilities_.name + " is not loaded in this process");
  }
  std::string version() const override { return version_; }

 private:
  Capabilities capabilities_;
  std::string version_;
};

/// Calls visit(key, member) for everything but device and dtypes, which are named by their words,
/// and pairs.
template <typename Can, typename Visit>
void for_each_member(Can& can, const Visit& visit) {
  visit("name", can.name);
  visit("description", can.description);
  visit("origin", can.origin);
  visit("min_architecture", can.min_architecture);
  visit("only_architecture", can.only_architecture);
  visit("head_dims", can.head_dims);
  visit("value_dims", can.value_dims);
  visit("gqa", can.gqa);
  visit("static_masks", can.static_masks);
  visit("block_masks", can.block_masks);
  visit("backward", can.backward);
  visit("accumulate", can.accumulate);
  visit("merges_earlier_dims", can.merges_earlier_dims);
  visit("adds_to_dq", can.adds_to_dq);
  visit("deterministic", can.deterministic);
  visit("sinks", can.sinks);
  visit("softcap", can.softcap);
  visit("returns_lse", can.returns_lse);
  visit("strided", can.strided);
  visit("computes_all_of_windows_backward", can.computes_all_of_windows_backward);
  visit("gradient_of_parts", can.gradient_of_parts);
  visit("longest_first", can.longest_first);
  visit("looks_up_uneven_blocks", can.looks_up_uneven_blocks);
  visit("launches_longest_document", can.launches_longest_document);
  visit("says_windows", can.says_windows);
  visit("tests_each_interval", can.tests_each_interval);
  visit("group_gradients", can.group_gradients);
  visit("forward_tile_rows", can.forward_tile.rows);
  visit("forward_tile_keys", can.forward_tile.keys);
  visit("forward_packed_heads", can.forward_tile.packed_heads);
  visit("backward_tile_rows", can.backward_tile.rows);
  visit("backward_tile_keys", can.backward_tile.keys);
  visit("backward_packed_heads", can.backward_tile.packed_heads);
  auto& bytes = can.backward_bytes;
  visit("backward_per_q", bytes.per_q);
  visit("backward_per_k", bytes.per_k);
  visit("backward_per_row", bytes.per_row);
  visit("backward_grouped_per_q", bytes.grouped_per_q);
  visit("backward_grouped_per_k", bytes.grouped_per_k);
  visit("backward_packed_per_q", bytes.packed_per_q);
  visit("backward_document_rows", bytes.document_rows);
  visit("backward_document_keys", bytes.document_keys);
}

}  // namespace

nlohmann::json describe_kernel(const Kernel& kernel) {
  const Capabilities& can = kernel.capabilities();
  nlohmann::json json{{"version", kernel.version()}, {"device", to_string(can.device)}};
  for_each_member(can, [&](const char* key, const auto& value) { json[key] = value; });
  json["dim_pairs"] = nlohmann::json::array();
  for (const DimPair& pair : can.dim_pairs) {
    json["dim_pairs"].push_back({pair.head_dim, pair.value_dim});
  }
  json["dtypes"] = nlohmann::json::array();
  for (const DType dtype : can.dtypes) json["dtypes"].push_back(to_string(dtype));
  return json;
}

std::unique_ptr<Kernel> make_described_kernel(const nlohmann::json& description) {
  Capabilities can;
  for_each_member(can, [&](const char* key, auto& value) { description.at(key).get_to(value); });
  const bool is_cuda = description.at("device") == to_string(DeviceKind::cuda);
  can.device = is_cuda ? DeviceKind::cuda : DeviceKind::cpu;
  for (const auto& pair : description.at("dim_pairs")) {
    can.dim_pairs.push_back({pair.at(0).get<int>(), pair.at(1).get<int>()});
  }
  for (const auto& name : description.at("dtypes")) {
    if (const auto dtype = parse_dtype(name.get<std::string>())) can.dtypes.push_back(*dtype);
  }
  return std::make_unique<DescribedKernel>(std::move(can),
                                           description.at("version").get<std::string>());
}

}  // namespace longca
