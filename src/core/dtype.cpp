#include "core/dtype.h"

namespace longca {

std::string_view to_string(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return "float32";
    case DType::bfloat16:
      return "bfloat16";
    case DType::float16:
      return "float16";
  }
  return "?";
}

std::optional<DType> parse_dtype(std::string_view text) {
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    if (to_string(dtype) == text) return dtype;
  }
  return std::nullopt;
}

}  // namespace longca
