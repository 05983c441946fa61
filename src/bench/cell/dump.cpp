#include "bench/cell/dump.h"

#include <sstream>
#include <vector>

#include "bench/cell/npy.h"
#include "bench/suite/axes.h"
#include "core/error.h"
#include "core/output_file.h"
#include "mask/mask_json.h"

namespace longca {
namespace {

void write_files(const std::filesystem::path& folder, Device& device, const Inputs& inputs,
                 const Outputs& outputs, const GeneratedMask& generated, const MaskSpec& spec) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw_file_error("make folder", folder, error.value());
  const auto write = [&](const char* name, const auto& tensor) {
    const TensorView& view = tensor.view();
    const HostTensor host(view.dtype, view.tokens, view.heads, view.dim);
    device.copy(host.view().data, view.data, tensor.bytes());
    write_npy(folder / name, host.view());
  };
  const auto write_list = [&](const char* name, const auto& tensor) {  // [1, heads, 1] float32
    std::vector<float> values(static_cast<std::size_t>(tensor.view().heads));
    device.copy(values.data(), tensor.view().data, tensor.bytes());
    write_npy(folder / name, values);
  };
  write("q.npy", inputs.q);
  write("k.npy", inputs.k);
  write("v.npy", inputs.v);
  write("do.npy", inputs.dout);
  write("o.npy", outputs.o);
  const HostLse lse(outputs.lse.view().heads, outputs.lse.view().tokens);
  device.copy(lse.view().data, outputs.lse.view().data, lse.bytes());
  write_npy(folder / "lse.npy", lse.view());
  if (outputs.dq.bytes() > 0) {
    write("dq.npy", outputs.dq);
    write("dk.npy", outputs.dk);
    write("dv.npy", outputs.dv);
  }
  if (inputs.sink.bytes() > 0) write_list("sink.npy", inputs.sink);
  if (outputs.dsink.bytes() > 0) write_list("dsink.npy", outputs.dsink);
  std::ostringstream mask;
  write_mask_json(mask, generated, spec);
  replace_file(folder / "mask.json", mask.view());
}

}  // namespace

std::string dump_folder_name(const Case& c) {
  std::string name;
  for (const Axis& axis : axis_table()) {
    const auto value = axis.text(c);
    if (!value || axis.name == "pass" || axis.name == "mode") continue;
    if (!name.empty()) name += '_';
    if (axis.name != "kernel" && axis.name != "mask") name += axis.name + '-';
    for (const char letter : *value) name += letter == ':' ? 'x' : letter;
  }
  return name;
}

void dump_cell(const std::filesystem::path& folder, Device& device, const Inputs& inputs,
               const Outputs& outputs, const GeneratedMask& generated, const MaskSpec& spec) {
  try {
    write_files(folder, device, inputs, outputs, generated, spec);
  } catch (const InputError& error) {
    throw DumpFailed(error.what(), true);
  } catch (const SystemError& error) {
    throw DumpFailed(error.what(), false);
  }
}

}  // namespace longca
