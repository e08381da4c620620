// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_SUPPORT_TAR_GZ_H_
#define PERSEUS_CLI_SUPPORT_TAR_GZ_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/file.h"
#include "perseus/result.h"

namespace perseus::cli {

// The bytes of a tar file (POSIX ustar), packed by gzip. The files get the mode 0600, root as their
// owner, and the time `at_seconds` since 1970. kInvalidInput: a name of more than 100 bytes, or a
// file of 8 GiB or more, which ustar cannot hold.
Result<std::string> PackTarGz(const std::vector<OutputFile>& files, std::int64_t at_seconds);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_SUPPORT_TAR_GZ_H_
