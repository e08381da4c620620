// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_CLUSTER_SERVER_CLIENT_H_
#define PERSEUS_CLI_CLUSTER_SERVER_CLIENT_H_

#include <array>
#include <functional>
#include <initializer_list>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/framework/value_parsers.h"
#include "http/client.h"
#include "perseus/result.h"

namespace perseus::cli {

// The states of jobs but "finished", of which there may be thousands.
inline constexpr std::array<const char*, 5> kUnfinishedStates = {
    "registering", "profiling", "characterizing", "running", "failed"};

// A server, asked until one answer is an error. One thread.
class ServerClient {
 public:
  static Result<ServerClient> Connect(const ServerFlags& given);

  // The body of an answer; what the server refuses is an error with its sentence.
  Result<std::string> Text(const char* method, const std::string& target,
                           const std::string& body = "", int* status = nullptr);
  // As the server lists jobs, of all its pages. `filters`: of Filter(), one after the other.
  Result<nlohmann::ordered_json> Jobs(const std::string& filters,
                                      int limit = std::numeric_limits<int>::max());
  // For the query of a list; nothing where no value is given.
  static std::string Filter(const char* name, const std::string& value);
  // The path of a job by its id, its client key, or a name that one job has.
  Result<std::string> JobPath(const std::string& job);
  http::Client& http() { return client_; }

  // An object; {} of any other text.
  static nlohmann::ordered_json Parsed(const std::string& text);

 private:
  ServerClient(http::Client client, std::string token_file)
      : client_(std::move(client)), token_file_(std::move(token_file)) {}

  http::Client client_;
  std::string token_file_;  // Where the token came from; "": none is sent.
};

// Names of a server's things ("jobs"), a line each, for a shell that completes a word: asked once
// for each of `queries`, for a second at most; empty if the server does not answer. Omits names
// that a shell would have to quote.
std::string NamesFrom(const ServerFlags& flags, std::string_view things,
                      std::initializer_list<const char*> members,
                      const std::vector<std::string>& queries = {""});

// The events of a server, on standard error also that it is gone, since when, and that it is
// back: it is asked for a sign of life where it says nothing, and connected to again.
class ServerEvents {
 public:
  // `subject`: the path of the job whose events these are, or one that always answers.
  static Result<ServerEvents> Open(ServerClient* client, const std::string& path,
                                   std::string subject);

  // The next event, however long it takes; none once nobody wants it any more, which is asked
  // every few seconds. Error: the server refuses, as the job is deleted.
  Result<std::optional<http::Event>> Next(const std::function<bool()>& is_wanted);

 private:
  ServerEvents(ServerClient* client, std::string path, std::string subject,
               http::EventReader reader)
      : client_(client),
        path_(std::move(path)),
        subject_(std::move(subject)),
        reader_(std::move(reader)) {}

  bool IsAlive();
  Result<void> ComeBack(const std::string& why, const std::function<bool()>& is_wanted);
  Result<bool> TryAgain();

  ServerClient* client_;
  std::string path_;
  std::string subject_;
  http::EventReader reader_;
  std::string last_id_;
};

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_CLUSTER_SERVER_CLIENT_H_
