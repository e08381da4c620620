// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_AGENT_PROTOCOL_H_
#define PERSEUS_AGENT_PROTOCOL_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "device/device.h"
#include "perseus/result.h"

// What is said over the agent's Unix socket, version 1: each message is one
// line of JSON. docs/explanation/agent.md describes it for other languages. Plain values and
// pure functions: safe from any thread.
namespace perseus::agent {

inline constexpr int kProtocolVersion = 1;
inline constexpr const char* kDefaultSocketPath = "/run/perseus/agent.sock";

// Longest line, with its line end. The agent ends a connection that exceeds it.
inline constexpr std::size_t kMaxRequestBytes = std::size_t{64} << 10;
// Longest line that an agent may answer, for whoever reads it.
inline constexpr std::size_t kMaxAnswerBytes = std::size_t{1} << 20;
// Requests of one connection that wait for their answer; beyond it the agent
// stops reading from the connection until some are answered.
inline constexpr int kMaxRequestsInFlight = 64;
inline constexpr std::size_t kMaxNameBytes = 128;  // GPU identifiers, client names.
inline constexpr std::int64_t kMaxRequestId = std::int64_t{1} << 53;
inline constexpr int kMaxClockMhz = 100'000;

enum class Operation : std::uint8_t {
  kHello,       // First of every connection: versions, and what the node has.
  kLease,       // Become the owner of a GPU's clock.
  kSet,         // Owner: lock the clock. Answered when it is set.
  kRelease,     // Owner: give the clock back, keep the lease.
  kYield,       // Owner: give the clock back, end the lease.
  kRenew,       // Say that the client is alive; any other message does, too.
  kEnergy,      // Read the energy counter.
  kConditions,  // Who else acts on the GPU.
  kStatus,      // Owners, clocks, counters, settings.
  kReleaseAll,  // Operators: give every clock of the node back, or that of one GPU; end the leases.
};
std::string_view OperationName(Operation operation);

struct Request {
  std::int64_t id = 1;  // 1 to kMaxRequestId; chosen by the client, repeated in the answer.
  Operation operation = Operation::kHello;
  std::string gpu;                 // UUID. lease, set, release, yield, energy, conditions.
  int mhz = 0;                     // set: 1 to kMaxClockMhz.
  int version = kProtocolVersion;  // hello
  std::string client;              // hello: a name for people.
};

// Why a request was refused.
enum class Refusal : std::uint8_t {
  kHeld,        // Somebody else has the lease.
  kNotLeased,   // The connection has no lease of this GPU, or lost it.
  kDenied,      // The user may not do this.
  kUnknownGpu,  // No such GPU here.
  kBadRequest,  // Not a request of this protocol.
  kDevice,      // The driver, or the journal, refused.
};
std::string_view RefusalName(Refusal refusal);  // "held", "not_leased", ...

struct Refused {
  Refusal code = Refusal::kBadRequest;
  std::string message;  // One sentence for people.
};

// lease, release, yield, renew: nothing more to say.
struct Done {};

struct GpuSummary {
  std::string uuid;
  std::string name;
  int index = 0;
  std::vector<int> clocks_mhz;            // Ascending.
  std::optional<std::int64_t> owner_pid;  // Who has the lease.
};

struct HelloAnswer {
  int version = kProtocolVersion;
  bool observe = false;  // The agent sets no clock: every `set` is refused.
  // A client that says nothing for so long loses its clocks (docs/explanation/agent.md).
  double max_silence_seconds = 0;
  std::vector<GpuSummary> gpus;
};

struct SetAnswer {
  int mhz = 0;               // What was set: the nearest supported clock.
  std::int64_t took_us = 0;  // The driver call alone. 0: it was set already.
  bool superseded = false;   // A newer `set`, or the end of the lease, came first.
};

struct EnergyAnswer {
  double joules = 0;
  std::int64_t at_ns = 0;  // CLOCK_MONOTONIC right after the read.
};

struct ConditionsAnswer {
  device::GpuConditions conditions;
  std::vector<std::string> fights;  // What works against a locked clock, one sentence each.
};

struct OwnerStatus {
  std::int64_t pid = 0;
  std::int64_t uid = 0;
  std::string user;
  std::string client;
  double held_seconds = 0;
  double silent_seconds = 0;  // Since its last message.
};

struct GpuStatus {
  std::string uuid;
  std::string name;
  int index = 0;
  std::optional<OwnerStatus> owner;
  std::optional<int> locked_mhz;  // As far as the agent knows.
  bool restore_pending = false;   // A clock could not be given back yet; retried.
  std::string last_error;         // Of the driver, in its newest call; empty: it went well.
  std::int64_t sets = 0;          // Driver calls that locked a clock,
  std::int64_t restores = 0;      // gave one back,
  std::int64_t failures = 0;      // or failed.
  std::int64_t superseded = 0;    // `set`s that were overtaken.
  std::vector<std::string> fights;
};

struct StatusAnswer {
  std::int64_t pid = 0;
  std::string driver;  // As it was named: "nvml".
  bool observe = false;
  double uptime_seconds = 0;
  double max_silence_seconds = 0;
  double min_interval_seconds = 0;
  double poll_seconds = 0;  // Between two looks at the conditions of a GPU with a locked clock.
  int connections = 0;
  std::vector<GpuStatus> gpus;
};

struct ReleaseAllAnswer {
  int released = 0;                 // GPUs whose clocks are back,
  std::vector<std::string> failed;  // and a sentence for each that is retried.
};

struct Answer {
  std::optional<std::int64_t> id;      // None: the request had none that could be read.
  std::optional<Operation> operation;  // None: likewise.
  std::variant<Refused, Done, HelloAnswer, SetAnswer, EnergyAnswer, ConditionsAnswer, StatusAnswer,
               ReleaseAllAnswer>
      body;
};

// One line each, with its line end.
std::string FormatRequest(const Request& request);
std::string FormatAnswer(const Answer& answer);

// A request that could not be read: what its refusal needs.
struct RequestFault {
  std::optional<std::int64_t> id;
  std::string message;
};

// Of one line, with or without its line end. Any bytes are safe. Keys that the
// operation does not have are a fault.
tl::expected<Request, RequestFault> ParseRequest(std::string_view line);
// Keys that are not known are ignored: agents may say more than clients know.
Result<Answer> ParseAnswer(std::string_view line);

}  // namespace perseus::agent

#endif  // PERSEUS_AGENT_PROTOCOL_H_
