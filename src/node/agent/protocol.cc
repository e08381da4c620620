// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "agent/protocol.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "agent/protocol_text.h"
#include "common/json_text.h"
#include "common/tree.h"
#include "common/tree_reader.h"

namespace perseus::agent {
namespace {

constexpr std::array<std::pair<Operation, std::string_view>, 11> kOperations = {{
    {Operation::kHello, "hello"},
    {Operation::kLease, "lease"},
    {Operation::kSet, "set"},
    {Operation::kRelease, "release"},
    {Operation::kYield, "yield"},
    {Operation::kRenew, "renew"},
    {Operation::kEnergy, "energy"},
    {Operation::kClock, "clock"},
    {Operation::kConditions, "conditions"},
    {Operation::kStatus, "status"},
    {Operation::kReleaseAll, "release_all"},
}};

constexpr std::array<std::pair<Refusal, std::string_view>, 6> kRefusals = {{
    {Refusal::kHeld, "held"},
    {Refusal::kNotLeased, "not_leased"},
    {Refusal::kDenied, "denied"},
    {Refusal::kUnknownGpu, "unknown_gpu"},
    {Refusal::kBadRequest, "bad_request"},
    {Refusal::kDevice, "device"},
}};

template <typename Names>
std::optional<typename Names::value_type::first_type> Named(const Names& names,
                                                            std::string_view name) {
  for (const auto& [value, text] : names) {
    if (text == name) return value;
  }
  return std::nullopt;
}

bool NamesGpu(Operation operation) {
  switch (operation) {
    case Operation::kLease:
    case Operation::kSet:
    case Operation::kRelease:
    case Operation::kYield:
    case Operation::kEnergy:
    case Operation::kClock:
    case Operation::kConditions:
      return true;
    case Operation::kHello:
    case Operation::kRenew:
    case Operation::kStatus:
    case Operation::kReleaseAll:
      break;
  }
  return false;
}

std::string Name(const TreeCursor& at) {
  std::string text = at.String();
  if (text.size() > kMaxNameBytes) at.Fail("is longer than 128 bytes");
  return text;
}

// The number of a request that may be no request otherwise.
std::optional<std::int64_t> IdOf(const TreeNode& root) {
  const TreeMember* member = root.Find("id");
  const double* number = member == nullptr ? nullptr : std::get_if<double>(&member->node.value);
  if (number == nullptr || !(*number >= 1 && *number <= static_cast<double>(kMaxRequestId)) ||
      std::trunc(*number) != *number) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(*number);
}

Request ReadRequest(const TreeCursor& root) {
  Request request;
  request.id = ReadWhole(root.Get("id"), 1);
  const TreeCursor op = root.Get("op");
  const std::string name = op.String();
  const std::optional<Operation> operation = OperationNamed(name);
  if (!operation) {
    op.FailExpected(
        "one of hello, lease, set, release, yield, renew, energy, conditions, status, release_all");
    return request;
  }
  request.operation = *operation;
  std::vector<std::string_view> known = {"id", "op"};
  if (NamesGpu(*operation)) {
    known.emplace_back("gpu");
    request.gpu = Name(root.Get("gpu"));
  }
  if (*operation == Operation::kSet) {
    known.emplace_back("mhz");
    request.mhz = root.Get("mhz").Integer(1, kMaxClockMhz);
  }
  if (*operation == Operation::kHello) {
    known.insert(known.end(), {"version", "client"});
    request.version = root.Get("version").Integer(1);
    if (const auto client = root.Find("client")) request.client = Name(*client);
  }
  if (*operation == Operation::kReleaseAll) {
    known.emplace_back("gpu");
    if (const auto gpu = root.Find("gpu")) request.gpu = Name(*gpu);
  }
  root.AllowOnly(known);
  return request;
}

}  // namespace

std::string_view OperationName(Operation operation) {
  return kOperations[static_cast<std::size_t>(operation)].second;
}

std::string_view RefusalName(Refusal refusal) {
  return kRefusals[static_cast<std::size_t>(refusal)].second;
}

std::optional<Operation> OperationNamed(std::string_view name) { return Named(kOperations, name); }

std::optional<Refusal> RefusalNamed(std::string_view name) { return Named(kRefusals, name); }

std::int64_t ReadWhole(const TreeCursor& at, std::int64_t least) {
  const double number =
      at.Number({.least = static_cast<double>(least), .most = static_cast<double>(kMaxRequestId)});
  if (std::trunc(number) == number) return static_cast<std::int64_t>(number);
  at.FailExpected("a whole number");
  return least;
}

std::string FormatRequest(const Request& request) {
  nlohmann::ordered_json out = {{"id", request.id}, {"op", OperationName(request.operation)}};
  if (request.operation == Operation::kHello) {
    out["version"] = request.version;
    if (!request.client.empty()) out["client"] = request.client;
  }
  const bool may_name_gpu = request.operation == Operation::kReleaseAll && !request.gpu.empty();
  if (NamesGpu(request.operation) || may_name_gpu) out["gpu"] = request.gpu;
  if (request.operation == Operation::kSet) out["mhz"] = request.mhz;
  return FormatCompact(out) + "\n";
}

tl::expected<Request, RequestFault> ParseRequest(std::string_view line) {
  if (line.size() > kMaxRequestBytes) {
    return tl::unexpected(RequestFault{
        std::nullopt, "the request is longer than 65536 bytes; send one request a line"});
  }
  const std::string name = "request";
  const Result<TreeNode> tree = ParseJsonTree(line, name);
  if (!tree) return tl::unexpected(RequestFault{std::nullopt, tree.error().message});
  TreeReader reader(*tree, name);
  Request request = ReadRequest(reader.Root());
  if (reader.failed()) return tl::unexpected(RequestFault{IdOf(*tree), reader.error()->message});
  return request;
}

}  // namespace perseus::agent
