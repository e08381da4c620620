// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_AGENT_SAFE_PLACE_H_
#define PERSEUS_AGENT_SAFE_PLACE_H_

#include <string>

#include "common/file_descriptor.h"
#include "perseus/result.h"

// Checks where a privileged process may keep files, so that no other user can replace them.
namespace perseus::agent {

// Makes the folder of the file `path` if it is missing. If this process is root, fails if other
// users could replace a file in that folder. (/tmp is allowed: there only owners can.)
Result<void> MakeFolderFor(const std::string& path);

// Why an agent cannot have made this open file: it is not a regular file, belongs to another user,
// or has a second name. Empty: it may be written.
std::string WhyNotOurs(const FileDescriptor& file);

}  // namespace perseus::agent

#endif  // PERSEUS_AGENT_SAFE_PLACE_H_
