// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_BASE_FAILURE_H_
#define PERSEUS_SERVER_BASE_FAILURE_H_

#include <cstdint>
#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "perseus/result.h"

namespace perseus::server {

// Why a request was not done, in the words of the API (docs/explanation/server.md).
enum class FailureCode : std::uint8_t {
  kInvalid,      // 422: it cannot be, whatever else is known.
  kNotFound,     // 404
  kConflict,     // 409: it contradicts what is known.
  kTooLarge,     // 413: over a limit.
  kUnavailable,  // 503: the store cannot take it now.
  kStale,        // 503: another server was first. Tried again before anybody hears of it.
  kPast,         // 412: the job is no longer as the request expects it.
  kInternal,     // 500: a bug of ours.
};

struct Failure {
  FailureCode code = FailureCode::kInternal;
  std::string message;     // One sentence.
  std::string field = {};  // "ranks[3].gpu"; empty where it is about no field.
};

template <typename T>
using Outcome = tl::expected<T, Failure>;

inline tl::unexpected<Failure> Fail(FailureCode code, std::string message, std::string field = {}) {
  return tl::unexpected<Failure>(Failure{code, std::move(message), std::move(field)});
}

// Of a store that refused: for now, or what no store would take.
inline tl::unexpected<Failure> Unavailable(const Error& error) {
  return Fail(
      error.code == ErrorCode::kInvalidInput ? FailureCode::kInvalid : FailureCode::kUnavailable,
      error.message);
}

// Of input that a reader of Perseus refused.
tl::unexpected<Failure> Invalid(const Error& error);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_BASE_FAILURE_H_
