#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/memory.h"
#include "guarded.h"
#include "longca.h"

namespace longca::capi {

/// A refusal with a status of its own.
class Refusal : public std::runtime_error {
 public:
  Refusal(longca_status status, const std::string& sentence)
      : std::runtime_error(sentence), status_(status) {}
  longca_status status() const { return status_; }

 private:
  longca_status status_;
};

/// The body of a C function: exceptions become its status, and the sentence of longca_last_error.
template <typename Body>
longca_status answer(const Body& body) noexcept {
  return guarded(LONGCA_FAILED, [&]() -> longca_status {
    const auto fail = [](longca_status status, const std::exception& error) {
      set_last_error(error.what());
      return status;
    };
    try {
      body();
      return LONGCA_OK;
    } catch (const Refusal& refusal) {
      return fail(refusal.status(), refusal);
    } catch (const InputError& error) {
      return fail(LONGCA_INVALID_ARGUMENT, error);
    } catch (const std::bad_alloc& error) {
      return fail(LONGCA_OUT_OF_MEMORY, error);
    }
  });
}

/// Throws InputError that names the argument unless its address is a multiple of its element's
/// bytes.
inline void require_aligned(const void* data, std::size_t bytes, std::string_view name) {
  if (reinterpret_cast<std::uintptr_t>(data) % bytes == 0) return;
  throw_input_error("{} lies at {}, which is no multiple of its elements' {} bytes", name, data,
                    bytes);
}

/// Throws InputError that names the argument unless it is a pointer to something.
template <typename T>
T& required(T* pointer, const char* name) {
  if (pointer == nullptr) throw_input_error("{} is NULL", name);
  require_aligned(pointer, alignof(T), name);
  return *pointer;
}

/// Throws InputError that names the function which a caller's transport lacks.
inline void check_transport(const longca_transport& transport) {
  if (transport.start == nullptr) throw_input_error("transport.start is NULL");
  if (transport.finish == nullptr) throw_input_error("transport.finish is NULL");
}

/// Gives the caller what `make()` returns, a unique_ptr; makes nothing where there is no place for
/// it.
template <typename T, typename Make>
void give(T** target, const char* name, const Make& make) {
  T*& place = required(target, name);
  place = make().release();
}

/// The caller's structure with those members that his header does not know as in `defaults`.
/// Every size of such a structure is a multiple of its alignment, where no member is cut.
template <typename T>
T known_part(const T& given, T defaults, const char* name) {
  constexpr std::size_t kMaxSize = 4096;
  const std::size_t size = given.struct_size;
  if (size < sizeof(std::size_t) || size > kMaxSize || size % alignof(T) != 0) {
    throw_input_error("struct_size of {} is {}: sizeof({}) is meant", name, size, name);
  }
  if (size > sizeof(T)) {
    throw_input_error("{} has {} bytes, this library knows {} of them: it is older than longca.h",
                      name, size, sizeof(T));
  }
  const auto* from = reinterpret_cast<const unsigned char*>(&given);
  std::copy_n(from, size, reinterpret_cast<unsigned char*>(&defaults));
  return defaults;
}

}  // namespace longca::capi
