// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PROFILE_SHA256_H_
#define PERSEUS_PROFILE_SHA256_H_

#include <string>
#include <string_view>

namespace perseus {

// Lower-case hex SHA-256 of `bytes` (FIPS 180-4).
std::string Sha256Hex(std::string_view bytes);

}  // namespace perseus

#endif  // PERSEUS_PROFILE_SHA256_H_
