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

// The rules by which a request is admitted or refused before its body is read.
struct AdmissionRules {
  const Router* router = nullptr;
  const TokenSet* tokens = nullptr;  // Null: every client may do everything.
  // For servers without tokens: refuse other host names (DNS rebinding) and other origins, so that
  // a web page in a browser on this machine cannot send requests in its user's name.
  bool only_local_hosts = false;
  std::size_t max_body_bytes = 0;  // For routes without a limit of their own.
  std::string_view starting;       // As ServerOptions::starting.
};

struct Admission {
  std::optional<Response> refusal;  // If not set, the request is admitted: see the rest.
  const Route* route = nullptr;
  std::vector<std::string> parameters;
  Request request;  // Without body and peer.
  std::size_t max_body_bytes = 0;
  bool expects_continue = false;
  bool is_head = false;  // A HEAD request: the answer is sent without its body.
};

// Moves from `head`.
Admission Admit(MessageHead head, const AdmissionRules& rules);

}  // namespace perseus::http

#endif  // PERSEUS_HTTP_ADMISSION_H_
