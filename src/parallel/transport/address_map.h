#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/tensor.h"

namespace longca {

/// Where memory lies in a call that a plan knows by addresses that only stand for it. Addresses
/// that no entry covers stand for themselves.
class AddressMap {
 public:
  /// What stands for one tensor is so many bytes from what stands for the next: further than any
  /// transport joins messages, which may lie otherwise in a call, into one copy with a stride.
  static constexpr std::int64_t kApart = std::int64_t{4} << 30;

  /// The next call's [stand_in, stand_in + bytes) is at `data`.
  void bind(const void* stand_in, std::int64_t bytes, void* data) {
    const auto* begin = static_cast<const std::byte*>(stand_in);
    for (Entry& entry : entries_) {
      if (entry.begin != begin) continue;
      entry.data = static_cast<std::byte*>(data);
      return;
    }
    entries_.push_back({begin, begin + bytes, static_cast<std::byte*>(data)});
  }

  void* at(const void* address) const {
    const auto* data = static_cast<const std::byte*>(address);
    for (const Entry& entry : entries_) {
      if (data >= entry.begin && data < entry.end) return entry.data + (data - entry.begin);
    }
    return const_cast<void*>(address);
  }
  TensorView at(TensorView view) const {
    view.data = at(view.data);
    return view;
  }
  ConstTensorView at(ConstTensorView view) const {
    view.data = at(view.data);
    return view;
  }
  LseView at(LseView view) const {
    view.data = static_cast<float*>(at(static_cast<const void*>(view.data)));
    return view;
  }
  ConstLseView at(ConstLseView view) const {
    view.data = static_cast<const float*>(at(static_cast<const void*>(view.data)));
    return view;
  }

 private:
  struct Entry {
    const std::byte* begin;
    const std::byte* end;
    std::byte* data;
  };
  std::vector<Entry> entries_;
};

}  // namespace longca
