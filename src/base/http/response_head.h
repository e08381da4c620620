// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_HTTP_RESPONSE_HEAD_H_
#define PERSEUS_HTTP_RESPONSE_HEAD_H_

#include <cstdint>
#include <ctime>
#include <string>

#include "http/message.h"

namespace perseus::http {

// How the end of a body is marked.
enum class BodyFraming : std::uint8_t { kLength, kChunked, kUntilClose };

struct ResponseFraming {
  BodyFraming body = BodyFraming::kLength;
  bool keep_alive = true;
  bool is_http_1_1 = true;  // Version of the request.
};

// Whether a response of this status may have a body.
bool MayHaveBody(int status);

// Status line and headers, with the empty line. `date` is HttpDate()'s.
std::string FormatHead(const Response& response, const ResponseFraming& framing,
                       const std::string& date);

// "Sun, 06 Nov 1994 08:49:37 GMT".
std::string HttpDate(std::time_t time);

}  // namespace perseus::http

#endif  // PERSEUS_HTTP_RESPONSE_HEAD_H_
