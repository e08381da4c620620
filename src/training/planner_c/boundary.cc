// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "planner_c/boundary.h"

#include <cstdlib>
#include <exception>
#include <stdexcept>

namespace perseus::planner_c {

char* NewText(std::string_view text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  if (!text.empty()) std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return copy;
}

perseus_planner_status StatusOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidInput:
    case ErrorCode::kConflict:
      return PERSEUS_PLANNER_INVALID;
    case ErrorCode::kInfeasible:
      return PERSEUS_PLANNER_INFEASIBLE;
    case ErrorCode::kIo:
    case ErrorCode::kDenied:
      return PERSEUS_PLANNER_IO;
    case ErrorCode::kOverflow:
      return PERSEUS_PLANNER_OVERFLOW;
    case ErrorCode::kCancelled:
      return PERSEUS_PLANNER_CANCELLED;
    case ErrorCode::kInternal:
      break;
  }
  return PERSEUS_PLANNER_INTERNAL;
}

perseus_planner_status Fail(const Error& error, char** message) {
  if (message != nullptr) *message = NewText(error.message);
  return StatusOf(error.code);
}

perseus_planner_status StatusOfException(char** message) noexcept {
  const auto tell = [message](std::string_view sentence) {
    if (message == nullptr) return;
    try {
      *message = NewText(sentence);
    } catch (...) {
      *message = nullptr;
    }
  };
  try {
    throw;
  } catch (const std::bad_alloc&) {
    tell("there is not enough memory");
    return PERSEUS_PLANNER_NO_MEMORY;
  } catch (const std::length_error&) {
    tell("there is not enough memory");
    return PERSEUS_PLANNER_NO_MEMORY;
  } catch (const std::exception& error) {
    tell(error.what());
  } catch (...) {
    tell("an unknown error");
  }
  return PERSEUS_PLANNER_INTERNAL;
}

}  // namespace perseus::planner_c

void perseus_planner_free_text(char* text) { std::free(text); }

int perseus_planner_abi_version(void) { return PERSEUS_PLANNER_ABI_VERSION; }
