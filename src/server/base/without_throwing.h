// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_BASE_WITHOUT_THROWING_H_
#define PERSEUS_SERVER_BASE_WITHOUT_THROWING_H_

#include <fmt/format.h>

#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

#include "perseus/result.h"

namespace perseus::server {

// Returns the result of `work`, a Result or an Outcome, or an error kInternal if it throws. So its
// caller always gets a result. `what` goes on after "to": "plan this job".
template <typename Work>
auto WithoutThrowing(std::string_view what, const Work& work) -> decltype(work()) {
  using Error = typename decltype(work())::error_type;
  Error error;  // Its code is kInternal.
  try {
    return work();
  } catch (const std::bad_alloc&) {
    error.message = fmt::format("the server has too little memory to {}", what);
  } catch (const std::exception& exception) {
    error.message = fmt::format("a bug: an attempt to {} threw: {}", what, exception.what());
  }
  return tl::unexpected<Error>(std::move(error));
}

// Runs `call`, which asks a JobStore. If that throws, no callback comes, so `on_thrown` gets why.
// `what`: see WithoutThrowing().
template <typename Call, typename OnThrown>
void AskStore(const char* what, const Call& call, const OnThrown& on_thrown) {
  const Result<void> asked = WithoutThrowing(what, [&]() -> Result<void> {
    call();
    return {};
  });
  if (!asked) on_thrown(asked.error());
}

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_BASE_WITHOUT_THROWING_H_
