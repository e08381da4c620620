// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLANNER_C_BOUNDARY_H_
#define PERSEUS_PLANNER_C_BOUNDARY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <string_view>

#include "perseus/planner_c.h"
#include "perseus/result.h"

// The border between C and C++: texts, statuses, structs that grow, exceptions.
namespace perseus::planner_c {

// A copy for perseus_planner_free_text(). Throws std::bad_alloc.
char* NewText(std::string_view text);

perseus_planner_status StatusOf(ErrorCode code);

// Sets *message, where there is one, to the sentence.
perseus_planner_status Fail(const Error& error, char** message);

inline Error Invalid(std::string sentence) {
  return {ErrorCode::kInvalidInput, std::move(sentence)};
}

// What the last exception was.
perseus_planner_status StatusOfException(char** message) noexcept;

// `work`, which returns a status, with nothing thrown out of it.
template <typename Work>
perseus_planner_status Guarded(char** message, Work work) noexcept {
  if (message != nullptr) *message = nullptr;
  try {
    return work();
  } catch (...) {
    return StatusOfException(message);
  }
}

// The part of a struct that the caller knows, and defaults for the rest. False:
// there is none, or its size is not set.
template <typename Struct>
bool CopyIn(const Struct* from, Struct* to) {
  *to = {};
  if (from == nullptr || from->struct_size < sizeof(from->struct_size)) return false;
  std::memcpy(to, from, std::min<std::size_t>(from->struct_size, sizeof(*to)));
  return true;
}

// Fills in as much as the caller knows; struct_size stays.
template <typename Struct>
perseus_planner_status CopyOut(Struct from, Struct* to) {
  if (to == nullptr || to->struct_size < sizeof(to->struct_size)) return PERSEUS_PLANNER_INVALID;
  from.struct_size = to->struct_size;
  std::memcpy(to, &from, std::min<std::size_t>(to->struct_size, sizeof(from)));
  return PERSEUS_PLANNER_OK;
}

// A caller's callback.
struct Progress {
  perseus_planner_progress function = nullptr;
  void* user = nullptr;

  // Whether to go on.
  bool operator()(double share) const { return function == nullptr || function(user, share) == 0; }
};

// A text whose size is known, as bytes in between may be 0. NULL is "".
inline std::string_view TextOf(const char* text, std::size_t size) {
  return text == nullptr ? std::string_view() : std::string_view(text, size);
}

}  // namespace perseus::planner_c

#endif  // PERSEUS_PLANNER_C_BOUNDARY_H_
