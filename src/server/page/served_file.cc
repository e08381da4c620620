// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/page/served_file.h"

#include <fmt/format.h>
#include <openssl/sha.h>

#include <cstddef>
#include <iterator>
#include <memory>

namespace perseus::web {
namespace {

// The same bytes have the same tag, on every server.
std::string EntityTagOf(std::string_view bytes) {
  constexpr std::size_t kTagBytes = 12;
  unsigned char digest[SHA256_DIGEST_LENGTH];
  ::SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest);
  std::string tag = "\"";
  for (std::size_t i = 0; i < kTagBytes; ++i)
    fmt::format_to(std::back_inserter(tag), "{:02x}", digest[i]);
  return tag + "\"";
}

// "*", or a list of tags, each perhaps marked as weak (RFC 9110, 13.1.2).
bool Names(std::string_view list, std::string_view tag) {
  return list == "*" || list.find(tag) != std::string_view::npos;
}

}  // namespace

ServedFile::ServedFile(const PageFile& file, std::string_view policy)
    : entity_tag_(EntityTagOf(file.bytes)) {
  answer_.content_type = file.content_type;
  answer_.body = std::make_shared<const std::string>(file.bytes);
  answer_.headers = {{"ETag", entity_tag_},
                     {"Cache-Control", "no-cache"},
                     {"Content-Security-Policy", std::string(policy)},
                     {"X-Frame-Options", "DENY"},
                     {"Referrer-Policy", "no-referrer"},
                     {"Cross-Origin-Opener-Policy", "same-origin"},
                     {"Cross-Origin-Resource-Policy", "same-origin"}};
}

http::Response ServedFile::AnswerTo(const http::Request& request) const {
  http::Response response = answer_;
  const std::string* known = http::FindHeader(request.headers, "If-None-Match");
  if (known != nullptr && Names(*known, entity_tag_)) {
    response.status = 304;
    response.body = nullptr;
  }
  return response;
}

}  // namespace perseus::web
