// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_AGENT_SAFE_PLACE_H_
#define PERSEUS_AGENT_SAFE_PLACE_H_

#include <string>

#include "common/file_descriptor.h"
#include "perseus/result.h"

// Where a privileged process may keep files: nobody else can have put something there.
namespace perseus::agent {

// Makes the folder of the file `path` where it is missing. To root an error: a folder in which
// others could replace the file. (In /tmp, where only owners may, they cannot.)
Result<void> MakeFolderFor(const std::string& path);

// Why an agent cannot have made this open file: it is not a regular file, belongs to another user,
// or has a second name. Empty: it may be written.
std::string WhyNotOurs(const FileDescriptor& file);

}  // namespace perseus::agent

#endif  // PERSEUS_AGENT_SAFE_PLACE_H_
