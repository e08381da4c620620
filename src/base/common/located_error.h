// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_LOCATED_ERROR_H_
#define PERSEUS_COMMON_LOCATED_ERROR_H_

#include <string>
#include <string_view>

#include "perseus/result.h"

namespace perseus {

// "FILE:LINE:COLUMN: the message", with the place for programs beside it.
inline Error ErrorAt(const std::string& file, int line, int column, std::string_view message) {
  Error error;
  error.code = ErrorCode::kInvalidInput;
  error.message = file + ':' + std::to_string(line) + ':' + std::to_string(column) + ": ";
  error.message += message;
  error.file = file;
  error.line = line;
  error.column = column;
  return error;
}

inline tl::unexpected<Error> InvalidAt(const std::string& file, int line, int column,
                                       std::string_view message) {
  return tl::unexpected<Error>(ErrorAt(file, line, column, message));
}

}  // namespace perseus

#endif  // PERSEUS_COMMON_LOCATED_ERROR_H_
