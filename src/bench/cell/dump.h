#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>

#include "bench/cell/tensors.h"
#include "bench/suite/case.h"
#include "mask/generators.h"

namespace longca {

/// A file or folder of a dump cannot be written, which no kernel is to blame for. what() is a
/// sentence that names it.
class DumpFailed : public std::runtime_error {
 public:
  DumpFailed(const std::string& sentence, bool path_is_wrong)
      : std::runtime_error(sentence), path_is_wrong_(path_is_wrong) {}
  /// Whether the user's path is wrong (an InputError), or the machine refused (a SystemError).
  bool path_is_wrong() const { return path_is_wrong_; }

 private:
  bool path_is_wrong_;
};

/// The name of a case's dump folder: its axes without pass and mode, so that both passes share it.
std::string dump_folder_name(const Case& c);

/// Copies the tensors of `device` to the host and writes q k v do o lse.npy and mask.json into
/// `folder` (made if missing), and dq dk dv.npy if there are gradients. Tensors are float32
/// [tokens, heads, dim], lse is [heads, tokens]; docs/guide/metrics.md shows how to recompute from
/// them. A file replaces an older one once it is complete. Throws DumpFailed.
void dump_cell(const std::filesystem::path& folder, Device& device, const Inputs& inputs,
               const Outputs& outputs, const GeneratedMask& generated, const MaskSpec& spec);

}  // namespace longca
