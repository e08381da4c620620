// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_TRACE_GUNZIP_H_
#define PERSEUS_SRC_TRACE_GUNZIP_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "perseus/result.h"

namespace perseus::trace {

// Whether the bytes begin as a gzip file does.
bool IsGzip(std::string_view bytes);

// What is packed in a gzip file (RFC 1952; several members, one behind the
// other, make one text). `source` is for messages. Errors: bytes that are no
// gzip, were cut off or changed, or hold more than `max_bytes`, of which no more
// are ever made.
Result<std::string> Gunzip(std::string_view bytes, const std::string& source,
                           std::size_t max_bytes);

}  // namespace perseus::trace

#endif  // PERSEUS_SRC_TRACE_GUNZIP_H_
