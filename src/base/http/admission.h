// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_HTTP_ADMISSION_H_
#define PERSEUS_HTTP_ADMISSION_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/message.h"
#include "http/message_parser.h"
#include "http/router.h"
#include "http/tokens.h"

namespace perseus::http {

// What decides about a request before its body is read.
struct AdmissionRules {
  const Router* router = nullptr;
  const TokenSet* tokens = nullptr;  // Null: everyone may do everything.
  // Where there are no tokens, a web page that a user of this machine looks at must
  // not be able to act as that user: names of other hosts (DNS rebinding) and other
  // origins are refused.
  bool only_local_hosts = false;
  std::size_t max_body_bytes = 0;  // Where the route says nothing.
  std::string_view starting;       // As ServerOptions::starting.
};

struct Admission {
  std::optional<Response> refusal;  // Else what follows is meant.
  const Route* route = nullptr;
  std::vector<std::string> parameters;
  Request request;  // Without body and peer.
  std::size_t max_body_bytes = 0;
  bool expects_continue = false;
  bool is_head = false;  // The answer goes without its body.
};

// `head` is taken apart.
Admission Admit(MessageHead head, const AdmissionRules& rules);

}  // namespace perseus::http

#endif  // PERSEUS_HTTP_ADMISSION_H_
