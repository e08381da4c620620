// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Any bytes as what a client sends: the same request however the bytes arrive, little
// kept, and nothing that looks like a path outside of what the routes say. Also as the
// other texts that this room reads: a token file, an address, events.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "common/printable.h"
#include "http/admission.h"
#include "http/client_wire.h"
#include "http/listener.h"
#include "http/message_parser.h"

namespace perseus::http {
namespace {

constexpr std::size_t kHeadBytes = 4096;
constexpr std::size_t kBodyBytes = 8192;

void Require(bool holds) {
  if (!holds) std::abort();
}

struct Outcome {
  MessageParser::Step step = MessageParser::Step::kMore;
  MessageHead head;
  std::string body;
};

Outcome Parse(std::string_view text, std::size_t piece) {
  MessageParser parser(MessageKind::kRequest, kHeadBytes);
  Outcome outcome;
  std::string unread;
  while (!text.empty()) {
    const std::string_view next = text.substr(0, piece);
    unread += next;
    text.remove_prefix(next.size());
    MessageParser::Fed fed;
    do {
      fed = parser.Feed(unread);
      Require(fed.consumed <= unread.size());
      unread.erase(0, fed.consumed);
      if (fed.step == MessageParser::Step::kHead) {
        outcome.head = parser.head();
        parser.AllowBody(kBodyBytes);
      }
    } while (fed.step == MessageParser::Step::kHead);
    outcome.step = fed.step;
    if (fed.step != MessageParser::Step::kMore) break;
    Require(unread.size() <= kHeadBytes);
  }
  outcome.body = parser.body();
  Require(outcome.body.size() <= kBodyBytes);
  return outcome;
}

bool IsClean(const std::string& text) {
  return ValidUtf8Prefix(text) == text.size() && std::none_of(text.begin(), text.end(), [](char c) {
           return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
         });
}

void CheckAdmission(const MessageHead& head, const TokenSet* tokens) {
  Route plan;
  plan.method = "GET";
  plan.pattern = "/jobs/{id}/plan";
  plan.at_least = Role::kTrain;
  Route any;
  any.method = "POST";
  any.pattern = "/{any}";
  any.at_least = Role::kNone;
  static const Router kRouter = *Router::Make({plan, any});
  AdmissionRules rules;
  rules.router = &kRouter;
  rules.tokens = tokens;
  rules.only_local_hosts = tokens == nullptr;
  rules.max_body_bytes = kBodyBytes;
  const Admission admission = Admit(head, rules);
  if (admission.refusal) {
    Require(admission.refusal->status >= 400 && admission.refusal->status < 500);
    Require(ValidUtf8Prefix(*admission.refusal->body) == admission.refusal->body->size());
    return;
  }
  Require(admission.route != nullptr && admission.parameters.size() == 1);
  for (const std::string& parameter : admission.parameters) {
    Require(!parameter.empty() && parameter != "." && parameter != ".." && IsClean(parameter));
    Require(parameter.find_first_of("/\\") == std::string::npos);
  }
  for (const auto& [name, value] : admission.request.query) Require(IsClean(name + value));
  if (admission.route->at_least == Role::kTrain) Require(admission.request.role >= Role::kTrain);
}

}  // namespace
}  // namespace perseus::http

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perseus::http;  // NOLINT(google-build-using-namespace)
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  const Outcome whole = Parse(text, size);
  const Outcome pieces = Parse(text, 1 + data[0] % 64);
  // An incomplete request may be known to be wrong sooner or later.
  Require((whole.step == MessageParser::Step::kDone) ==
          (pieces.step == MessageParser::Step::kDone));
  if (whole.step == MessageParser::Step::kDone) {
    Require(whole.head.method == pieces.head.method && whole.head.target == pieces.head.target);
    Require(whole.head.headers == pieces.head.headers && whole.body == pieces.body);
  }
  static const TokenSet kTokens = *TokenSet::Parse("train 0123456789abcdef node\n", "tokens");
  CheckAdmission(whole.head, nullptr);
  CheckAdmission(whole.head, &kTokens);

  (void)TokenSet::Parse(text, "tokens");
  (void)ParseListenAddress(text);
  (void)ParseEndpoint(text);
  EventParser events;
  (void)events.Feed(text);
  return 0;
}
