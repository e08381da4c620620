// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_CLUSTER_STORE_FLAGS_H_
#define PERSEUS_CLI_CLUSTER_STORE_FLAGS_H_

#include <string>

namespace perseus::cli {

// What was given to `store`. Stores are named as `serve --store` names them.
struct StoreFlags {
  std::string action;  // "copy"
  std::string from;
  std::string to;
};

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_CLUSTER_STORE_FLAGS_H_
