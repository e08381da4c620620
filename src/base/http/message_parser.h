// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_HTTP_MESSAGE_PARSER_H_
#define PERSEUS_HTTP_MESSAGE_PARSER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "http/message.h"

namespace perseus::http {

enum class MessageKind { kRequest, kResponse, kResponseToHead };

// The start line and the headers of a message.
struct MessageHead {
  std::string method, target;  // Of a request; the target as it came.
  int status = 0;              // Of a response.
  bool is_http_1_1 = false;
  bool keep_alive = false;  // Whether the message asks to keep the connection.
  bool has_body = false;    // Whether the head announces a body that is not empty.
  std::optional<std::uint64_t> content_length;
  Headers headers;
};

// Reads one message from the pieces in which it arrives. The grammar is Boost.Beast's,
// the only file that includes it is message_parser.cc; what requests may be beyond the
// grammar (one Host, no coding but chunked, bounds of everything that is kept) is ours.
class MessageParser {
 public:
  enum class Step {
    kMore,    // More bytes are needed. Pass the unconsumed bytes again, followed by new ones.
    kHead,    // The head is complete. Returned once per message.
    kDone,    // The message is complete.
    kFailed,  // See failure(); the connection cannot be used any more.
  };
  struct Fed {
    Step step = Step::kMore;
    std::size_t consumed = 0;
  };
  struct Failure {
    int status = 400;  // For the answer to a request.
    std::string message;
  };

  // `max_head_bytes`: limit for start line and headers, and also for a chunk's header and trailers.
  MessageParser(MessageKind kind, std::size_t max_head_bytes);
  MessageParser(MessageParser&&) noexcept;
  MessageParser& operator=(MessageParser&&) noexcept;
  ~MessageParser();

  // Parses up to the next step. Must not be called after kDone or kFailed.
  Fed Feed(std::string_view bytes);
  // The sender has closed the connection. False: the message is incomplete.
  bool FeedEnd();

  // Allows a body of up to `max_bytes`; longer ones fail with 413. Until this is called, no part of
  // the body is read.
  void AllowBody(std::size_t max_bytes);

  bool has_started() const;  // A byte was read.
  MessageHead& head();
  std::string& body();  // May be emptied between calls of Feed.
  const Failure& failure() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace perseus::http

#endif  // PERSEUS_HTTP_MESSAGE_PARSER_H_
