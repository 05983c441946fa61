#include "advise/known_bytes.h"

#include "bench/cell/tensors.h"

namespace longca::advise {

double known_bytes(const Kernel* kernel, const Case& c, const Work& work) {
  const auto tensors = static_cast<double>(tensor_bytes(c.problem()));
  if (kernel == nullptr || c.pass == Pass::forward) return tensors;
  const BackwardBytes& bytes = kernel->capabilities().backward_bytes;
  double per_q = bytes.per_q;
  double per_k = bytes.per_k;
  if (c.heads_q > c.heads_k) {
    per_q += bytes.grouped_per_q;
    per_k += bytes.grouped_per_k;
    if (work.form == MaskForm::documents) per_q += bytes.packed_per_q;
  }
  const double rows = work.rows + work.documents * bytes.document_rows * c.heads_q;
  const double keys = work.keys + work.documents * bytes.document_keys * c.heads_k;
  return tensors + rows * (per_q * c.head_dim + bytes.per_row) + keys * per_k * c.head_dim;
}

}  // namespace longca::advise
