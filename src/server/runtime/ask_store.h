// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_RUNTIME_ASK_STORE_H_
#define PERSEUS_SERVER_RUNTIME_ASK_STORE_H_

#include "perseus/result.h"
#include "server/base/without_throwing.h"

namespace perseus::server {

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

#endif  // PERSEUS_SERVER_RUNTIME_ASK_STORE_H_
