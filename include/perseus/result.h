// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_RESULT_H_
#define PERSEUS_RESULT_H_

// Link perseus::model (pkg-config: perseus-model).

#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "perseus/export.h"

PERSEUS_EXPORT_BEGIN
namespace perseus {
inline namespace v0 {

// The kind of failure that an Error reports. `perseus` exits with 2 for all of them but kInternal.
enum class ErrorCode {
  kInvalidInput,  // A file, flag or argument is malformed or contradictory.
  kInfeasible,    // The input is well formed, but no plan can satisfy it.
  kIo,            // The operating system or a driver refused to read or write.
  kDenied,        // The caller lacks the right to do this; the message says who has it.
  kConflict,      // Somebody else changed it, or holds the name; read again, then decide.
  kOverflow,      // Quantities do not fit the exact integer arithmetic.
  kCancelled,     // A callback of the caller asked to stop.
  kInternal,      // A bug of ours; never the user's fault.
};

// One sentence for the user: what is wrong, where ("profile.csv:12:5: ..."),
// what was expected and what to do. A plain value; safe to copy between threads.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message = {};
  // The place that `message` names, for programs.
  std::string file = {};
  int line = 0;  // From 1; 0: no place in a file. So is `column`, in bytes.
  int column = 0;
  std::string field = {};  // The key of a job file or of plan.json that is wrong; empty: none.
};

// A value or an Error. The compiler warns if a result is not looked at. Perseus throws nothing
// across its public headers.
//
// It derives from tl::expected, so everything that works with that works with this. The base is
// part of what v0 promises. Without a value, `*` and `->` are undefined, and value() throws
// tl::bad_expected_access<Error>.
template <typename T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
  Result() = default;
  Result(tl::expected<T, Error> other)  // NOLINT(google-explicit-constructor): the same thing.
      : tl::expected<T, Error>(std::move(other)) {}
};

inline tl::unexpected<Error> MakeError(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}

inline tl::unexpected<Error> InvalidInput(std::string message) {
  return MakeError(ErrorCode::kInvalidInput, std::move(message));
}

}  // namespace v0
}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_RESULT_H_
