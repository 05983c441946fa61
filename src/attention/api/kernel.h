#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "attention/api/problem.h"
#include "core/status.h"
#include "core/tensor.h"
#include "mask/mask.h"

namespace longca {

/// Tensors of a forward pass, in the memory of the problem's device. Query row q without an allowed
/// key gets o = 0, lse = −∞.
struct ForwardArgs {
  ConstTensorView q;  ///< [tokens_q, heads_q, dim]
  ConstTensorView k;  ///< [tokens_k, heads_k, dim]
  ConstTensorView v;  ///< [tokens_k, heads_k, dim]
  TensorView o;       ///< [tokens_q, heads_q, dim], the problem's dtype; float32 if accumulate
  LseView lse;        ///< [heads_q, tokens_q] float32
  /// Merges into (o, lse), which hold the result over other keys, instead of overwriting them:
  /// the softmax over both key sets (lse = −∞ marks a row that has seen nothing yet).
  bool accumulate = false;
  Stream stream = nullptr;
};

/// Tensors of a backward pass. `o` and `lse` are those of the whole softmax (all keys of the row).
struct BackwardArgs {
  ConstTensorView dout;  ///< [tokens_q, heads_q, dim], the problem's dtype
  ConstTensorView q;
  ConstTensorView k;
  ConstTensorView v;
  ConstTensorView o;
  ConstLseView lse;
  TensorView dq;            ///< as q; float32 if accumulate
  TensorView dk;            ///< as k; float32 if accumulate
  TensorView dv;            ///< as v; float32 if accumulate
  bool accumulate = false;  ///< adds into dq, dk, dv instead of overwriting them
  Stream stream = nullptr;
};

/// A kernel made ready for one problem and mask: index lists, workspace, compiled code. The calls
/// may be repeated; one at a time.
class Plan {
 public:
  virtual ~Plan() = default;
  virtual void forward(const ForwardArgs& args) = 0;
  /// Only for a problem with `backward`.
  virtual void backward(const BackwardArgs& args) = 0;
  /// Bytes that this plan holds beside the tensors of the calls.
  virtual std::int64_t workspace_bytes() const = 0;
  /// What runs, for the record's notes: the version of a library, the back end that it chose.
  virtual std::map<std::string, std::string> notes() const { return {}; }
  /// What compiling took, in plan() or in the first calls: a record keeps it apart from the plan's
  /// time.
  virtual double compile_ms() const { return 0; }
};

/// What a kernel can do, as data: `longca list kernels` prints it, `check_capabilities` applies it.
/// Kernels of one name on different devices are one row of the tables.
struct Capabilities {
  std::string name;
  std::string description;  ///< one line
  std::string origin;       ///< "here", or the package it comes from
  DeviceKind device = DeviceKind::cpu;
  int least_architecture = 0;  ///< of a GPU: 80 for compute capability 8.0
  int only_architecture = 0;   ///< the one it was built for (90 for sm_90a code); 0: any
  std::vector<DType> dtypes;
  std::vector<int> head_dims;  ///< empty: any
  bool gqa = true;             ///< heads_q > heads_k
  bool static_masks = true;    ///< masks without block lists
  bool block_masks = true;     ///< masks with block lists
  bool backward = true;
  bool accumulate = true;
  /// Has a backward pass that gives the same bits from call to call, for problems that ask for it.
  bool deterministic = false;
  bool returns_lse = true;
  bool strided = true;  ///< tensors and lse arrays with gaps; else contiguous ones only
  /// The backward pass goes by the o and lse that it is given, which may be those of more keys than
  /// it sees; else by what the forward pass of the same plan kept.
  bool gradient_of_parts = true;
};

/// One row of the benchmark. Stateless; adding one is a file and a line in registry.cpp
/// (docs/guide/adding-a-kernel.md).
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual const Capabilities& capabilities() const = 0;
  /// Yes, or a status and a sentence in the kernel's own terms. Never throws.
  virtual Support supports(const Problem& problem, const Mask& mask) const = 0;
  /// All preparation that depends on the mask; timed apart. Only for supported problems.
  virtual std::unique_ptr<Plan> plan(const Problem& problem, const Mask& mask) const = 0;
  /// The part of `supports` that asks neither a device nor a library: whether the kernel has words
  /// for the problem at all. By default what its capabilities say.
  virtual Support can_express(const Problem& problem, const Mask& mask) const;
  /// Of the library behind it, as it is here; empty if there is none.
  virtual std::string version() const { return {}; }
};

/// Whether the kernel has a form for the device at all, be the device there or not.
Support check_kind(const Capabilities& capabilities, DeviceKind device);
/// What `capabilities` say about a problem, wherever it runs; the sentence names the property and
/// the limit.
Support check_problem(const Capabilities& capabilities, const Problem& problem, const Mask& mask);
/// The same, after the device and its architecture.
Support check_capabilities(const Capabilities& capabilities, const Problem& problem,
                           const Mask& mask);

}  // namespace longca
