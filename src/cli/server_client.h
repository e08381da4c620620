// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_SERVER_CLIENT_H_
#define PERSEUS_CLI_SERVER_CLIENT_H_

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "cli/server_flags.h"
#include "http/client.h"
#include "perseus/result.h"

namespace perseus::cli {

// Of `words`, which begin with an action, those from `taken` on are not given: else an error,
// before anything is asked of a server. `command` as it is typed.
Result<void> CheckNoMoreWords(std::span<const std::string> words, std::size_t taken,
                              std::string_view command);

// A server, asked until one answer is an error. One thread.
class ServerClient {
 public:
  static Result<ServerClient> Connect(const ServerFlags& flags);

  // The body of an answer; what the server refuses is an error with its sentence.
  Result<std::string> Text(const char* method, const std::string& target,
                           const std::string& body = "", int* status = nullptr);
  http::Client& http() { return client_; }

  // An object; {} of any other text.
  static nlohmann::ordered_json Parsed(const std::string& text);

 private:
  explicit ServerClient(http::Client client) : client_(std::move(client)) {}

  http::Client client_;
};

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_SERVER_CLIENT_H_
