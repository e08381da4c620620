// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_HTTP_SECRET_FILE_H_
#define PERSEUS_HTTP_SECRET_FILE_H_

#include <cstddef>
#include <string>

#include "perseus/result.h"

namespace perseus::http {

// Reads a file that holds a secret. Refuses a file that users other than its owner and group may
// read, or that users other than its owner may write. (Group access is needed for systemd's
// credentials and for files of root:perseus with mode 0640.) Messages begin with `what`: "The token
// file".
Result<std::string> ReadSecretFile(const std::string& path, const std::string& what,
                                   std::size_t max_bytes);

}  // namespace perseus::http

#endif  // PERSEUS_HTTP_SECRET_FILE_H_
