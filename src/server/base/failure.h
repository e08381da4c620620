// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_BASE_FAILURE_H_
#define PERSEUS_SERVER_BASE_FAILURE_H_

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

#include "perseus/result.h"

namespace perseus::server {

// Why a request was refused (docs/explanation/server.md), with its HTTP status.
enum class FailureCode : std::uint8_t {
  kInvalid,      // 422: the request is wrong, whatever state the job is in.
  kNotFound,     // 404
  kConflict,     // 409: the request contradicts the present state of the job.
  kTooLarge,     // 413: over a limit.
  kUnavailable,  // 503: the store cannot be read or written now.
  kPast,         // 412: the job is no longer at the revision that the request names.
  kInternal,     // 500: a bug of ours.
};

struct Failure {
  FailureCode code = FailureCode::kInternal;
  std::string message;     // One sentence.
  std::string field = {};  // "ranks[3].gpu"; empty if the failure is not about one field.
};

template <typename T>
using Outcome = tl::expected<T, Failure>;

inline tl::unexpected<Failure> Fail(FailureCode code, std::string message, std::string field = {}) {
  return tl::unexpected<Failure>(Failure{code, std::move(message), std::move(field)});
}

// `what`: "job", "profile"; so is the command that lists them.
inline Failure NoSuch(const std::string& what, const std::string& id) {
  return {FailureCode::kNotFound, "there is no " + what + " with the id " + id +
                                      " on this server; 'perseus " + what + " list' shows the ids"};
}
inline Failure NoSuchJob(const std::string& id) { return NoSuch("job", id); }
inline Failure NoSuchProfile(const std::string& id) { return NoSuch("profile", id); }

// Of a job that was there.
inline tl::unexpected<Failure> JobWasDeleted() {
  return Fail(FailureCode::kNotFound,
              "the job was deleted; 'perseus job list' shows those that there are");
}

// How sentences name a job: "'llama' (j-1)", or its id alone where it has no name.
inline std::string NameAndId(const std::string& name, const std::string& id) {
  return name.empty() ? id : "'" + name + "' (" + id + ")";
}

// The failure for an error of the store: kInvalid if no store would accept the data, else
// kUnavailable.
inline tl::unexpected<Failure> Unavailable(const Error& error) {
  return Fail(
      error.code == ErrorCode::kInvalidInput ? FailureCode::kInvalid : FailureCode::kUnavailable,
      error.message);
}

// The failure for input that one of our parsers refused.
tl::unexpected<Failure> Invalid(const Error& error);

// Checks of values in requests.

inline bool IsPositive(double value) { return std::isfinite(value) && value > 0; }

// Fails if `value`, the field `name` of a request, is not in 0 .. `limit` - 1. `what` names the
// things that the job has `limit` of: "ranks".
inline Outcome<void> CheckBelow(int value, std::int64_t limit, std::string_view name,
                                std::string_view what) {
  if (value >= 0 && value < limit) return {};
  return Fail(
      FailureCode::kInvalid,
      fmt::format("{} is {}, but the job has {} {}, counted from 0", name, value, limit, what),
      std::string(name));
}

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_BASE_FAILURE_H_
