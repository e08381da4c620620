// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "common/c_boundary.h"

#include <fmt/format.h>

#include <cstdlib>
#include <exception>
#include <new>
#include <stdexcept>

namespace perseus::c_boundary {
namespace {

// No struct of ours comes near; what was never set is rarely below.
constexpr std::size_t kMostBytes = 4096;

}  // namespace

char* NewText(std::string_view text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  if (!text.empty()) std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return copy;
}

perseus_status StatusOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidInput:
    case ErrorCode::kConflict:
      return PERSEUS_INVALID;
    case ErrorCode::kInfeasible:
      return PERSEUS_INFEASIBLE;
    case ErrorCode::kIo:
    case ErrorCode::kDenied:
      return PERSEUS_IO;
    case ErrorCode::kOverflow:
      return PERSEUS_OVERFLOW;
    case ErrorCode::kCancelled:
      return PERSEUS_CANCELLED;
    case ErrorCode::kInternal:
      break;
  }
  return PERSEUS_INTERNAL;
}

perseus_status Fail(const Error& error, char** message) {
  if (message != nullptr) *message = NewText(error.message);
  return StatusOf(error.code);
}

perseus_status FailInvalid(std::string sentence, char** message) {
  return Fail({ErrorCode::kInvalidInput, std::move(sentence)}, message);
}

perseus_status StatusOfException(char** message) noexcept {
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
    return PERSEUS_NO_MEMORY;
  } catch (const std::length_error&) {
    tell("there is not enough memory");
    return PERSEUS_NO_MEMORY;
  } catch (const std::exception& error) {
    tell(error.what());
  } catch (...) {
    tell("an unknown error");
  }
  return PERSEUS_INTERNAL;
}

Result<void> CheckSize(const char* name, std::size_t size, std::size_t alignment) {
  if (size > 0 && size % alignment == 0 && size <= kMostBytes) return {};
  return InvalidInput(fmt::format(
      "the size of {} is {}, which cannot be; begin it with its ..._init() or PERSEUS_INIT()", name,
      size));
}

Result<void> CheckRest(const char* name, const void* from, std::size_t size, std::size_t known) {
  const char* const bytes = static_cast<const char*>(from);
  for (std::size_t i = known; i < size; ++i) {
    if (bytes[i] == 0) continue;
    return InvalidInput(
        fmt::format("{} of {} bytes sets something that this library, which knows {}, has not; "
                    "update the library, or leave what is new 0",
                    name, size, known));
  }
  return {};
}

Result<std::string_view> TextOf(const char* name, const char* text, std::size_t size) {
  if (text == nullptr) return std::string_view();
  if (size == PERSEUS_TO_ZERO) return std::string_view(text);
  if (size > 0) return std::string_view(text, size);
  return InvalidInput(
      fmt::format("{0} is given, but {0}_size is 0; give its size, or PERSEUS_TO_ZERO where it "
                  "ends with a zero "
                  "byte",
                  name));
}

}  // namespace perseus::c_boundary
