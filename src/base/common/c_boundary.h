// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_C_BOUNDARY_H_
#define PERSEUS_COMMON_C_BOUNDARY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "perseus/result.h"
#include "perseus/status.h"

// The border between C and C++, as perseus/status.h says: texts, statuses, structs that grow,
// exceptions.
namespace perseus::c_boundary {

// A copy for free(). Throws std::bad_alloc.
char* NewText(std::string_view text);

perseus_status StatusOf(ErrorCode code);

// Sets *message, where there is one, to the sentence.
perseus_status Fail(const Error& error, char** message);
perseus_status FailInvalid(std::string sentence, char** message);

// The status and message of the exception that is being handled.
perseus_status StatusOfException(char** message) noexcept;

// `work`, which returns a status, with nothing thrown out of it.
template <typename Work>
perseus_status Guarded(char** message, Work work) noexcept {
  if (message != nullptr) *message = nullptr;
  try {
    return work();
  } catch (...) {
    return StatusOfException(message);
  }
}

// Whether a caller's struct_size can be one of the struct `name`, which has `known` bytes here:
// fields are not cut in two, and a number that was never set is not followed.
Result<void> CheckSize(const char* name, std::size_t size, std::size_t alignment);
// Whether the bytes of a struct or an element of an array beyond `known` are 0.
Result<void> CheckRest(const char* name, const void* from, std::size_t size, std::size_t known);

// The part of a struct that the caller knows, and `defaults` for the rest.
template <typename Struct>
Result<Struct> CopyIn(const char* name, const Struct* from, Struct defaults = {}) {
  static_assert(std::is_trivially_copyable_v<Struct>);
  if (from == nullptr) return InvalidInput(std::string(name) + " is missing");
  std::uint32_t size = 0;
  std::memcpy(&size, from, sizeof(size));
  if (auto good = CheckSize(name, size, alignof(Struct)); !good)
    return tl::unexpected(good.error());
  if (auto good = CheckRest(name, from, size, sizeof(Struct)); !good) {
    return tl::unexpected(good.error());
  }
  std::memcpy(&defaults, from, std::min<std::size_t>(size, sizeof(Struct)));
  return defaults;
}

// Element `i` of a caller's array whose elements have `size` bytes, which CheckSize() has seen.
template <typename Struct>
Result<Struct> CopyElement(const char* name, const Struct* array, std::size_t size, std::size_t i) {
  Struct element = {};
  const char* const from = reinterpret_cast<const char*>(array) + size * i;
  if (auto good = CheckRest(name, from, size, sizeof(Struct)); !good) {
    return tl::unexpected(good.error());
  }
  std::memcpy(&element, from, std::min(size, sizeof(Struct)));
  return element;
}

// Fills in as much as the caller knows; struct_size is then what was filled in.
template <typename Struct>
Result<void> CopyOut(const char* name, Struct from, Struct* to) {
  static_assert(std::is_trivially_copyable_v<Struct>);
  if (to == nullptr) return InvalidInput(std::string(name) + " is missing");
  std::uint32_t size = 0;
  std::memcpy(&size, to, sizeof(size));
  if (auto good = CheckSize(name, size, alignof(Struct)); !good) return good;
  from.struct_size = static_cast<std::uint32_t>(std::min<std::size_t>(size, sizeof(Struct)));
  std::memcpy(to, &from, from.struct_size);
  return {};
}

// A text of known size, as bytes in between may be 0; PERSEUS_TO_ZERO: up to a zero byte. NULL is
// "". Errors: the size is 0.
Result<std::string_view> TextOf(const char* name, const char* text, std::size_t size);

}  // namespace perseus::c_boundary

#endif  // PERSEUS_COMMON_C_BOUNDARY_H_
