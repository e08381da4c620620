// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_PAGE_SERVED_FILE_H_
#define PERSEUS_SERVER_PAGE_SERVED_FILE_H_

#include <string>
#include <string_view>

#include "http/message.h"
#include "server/page/page_files.h"

namespace perseus::web {

// Only files of this server are run or shown; no other site may frame the page or get its forms.
inline constexpr std::string_view kPolicy =
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "object-src 'none'";

// The answer with a file, the same for everyone.
class ServedFile {
 public:
  ServedFile(const PageFile& file, std::string_view policy);

  // Without the bytes (304) where the client has them.
  http::Response AnswerTo(const http::Request& request) const;

 private:
  std::string entity_tag_;
  http::Response answer_;
};

}  // namespace perseus::web

#endif  // PERSEUS_SERVER_PAGE_SERVED_FILE_H_
