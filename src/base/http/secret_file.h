// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_HTTP_SECRET_FILE_H_
#define PERSEUS_HTTP_SECRET_FILE_H_

#include <cstddef>
#include <string>

#include "perseus/result.h"

namespace perseus::http {

// Reads a file that holds a secret, and refuses one that others than its owner and
// group may read, or others than its owner may write. `what` begins the sentence:
// "The token file". (The group may read, as systemd's credentials and files of
// root:perseus with mode 0640 need.)
Result<std::string> ReadSecretFile(const std::string& path, const std::string& what,
                                   std::size_t max_bytes);

}  // namespace perseus::http

#endif  // PERSEUS_HTTP_SECRET_FILE_H_
