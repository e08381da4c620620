// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_AGENT_PROTOCOL_H_
#define PERSEUS_AGENT_PROTOCOL_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/file_descriptor.h"
#include "device/device.h"
#include "perseus/result.h"

namespace perseus::agent {

// The protocol of the agent's Unix socket, version 1. Each message is one line of JSON; protocol.cc
// has its table. docs/explanation/agent.md describes it for other languages. Plain values and pure
// functions.

inline constexpr int kProtocolVersion = 1;
inline constexpr const char* kDefaultSocketPath = "/run/perseus/agent.sock";

// Longest request, with its line end. The agent closes a connection that sends a longer one.
inline constexpr std::size_t kMaxRequestBytes = std::size_t{64} << 10;
// Longest answer of an agent, with its line end.
inline constexpr std::size_t kMaxAnswerBytes = std::size_t{1} << 20;
// Limit of requests of one connection that wait for their answer. Beyond it, the agent stops
// reading from the connection until some are answered.
inline constexpr int kMaxRequestsInFlight = 64;
inline constexpr std::size_t kMaxNameBytes = 128;  // GPU identifiers, client names.
inline constexpr std::int64_t kMaxRequestId = std::int64_t{1} << 53;
inline constexpr int kMaxClockMhz = 100'000;

enum class Operation : std::uint8_t {
  kHello,       // First request of every connection: versions, and the node's GPUs.
  kLease,       // Become the owner of a GPU's clock.
  kSet,         // Owner: lock the clock. Answered when it is set.
  kRelease,     // Owner: give the clock back, keep the lease.
  kYield,       // Owner: give the clock back, end the lease.
  kRenew,       // Show that the client is alive, as any other message does.
  kEnergy,      // Read the energy counter.
  kClock,       // Read the SM clock that is in effect.
  kConditions,  // Power caps, temperature and others that act on the GPU's clock.
  kStatus,      // Owners, clocks, counters, settings.
  kReleaseAll,  // Operators: give every clock of the node back, or that of one GPU; end the leases.
};
std::string_view OperationName(Operation operation);

struct Request {
  std::int64_t id = 1;  // 1 to kMaxRequestId; chosen by the client, repeated in the answer.
  Operation operation = Operation::kHello;
  std::string gpu = {};            // UUID. lease, set, release, yield, energy, clock, conditions.
  int mhz = 0;                     // set: 1 to kMaxClockMhz.
  int version = kProtocolVersion;  // hello
  std::string client = {};         // hello: a name for people.
};

// Why a request was refused.
enum class Refusal : std::uint8_t {
  kHeld,        // Another client has the lease.
  kNotLeased,   // The connection has no lease of this GPU, or lost it.
  kDenied,      // The user may not do this.
  kUnknownGpu,  // No such GPU here.
  kBadRequest,  // Not a request of this protocol.
  kDevice,      // The driver, or the journal, refused.
};
inline constexpr std::array kAllRefusals = {Refusal::kHeld,       Refusal::kNotLeased,
                                            Refusal::kDenied,     Refusal::kUnknownGpu,
                                            Refusal::kBadRequest, Refusal::kDevice};
std::string_view RefusalName(Refusal refusal);  // "held", "not_leased", ...

struct Refused {
  Refusal code = Refusal::kBadRequest;
  std::string message;  // One sentence for people.
};

// Answer to lease, release, yield and renew.
struct Done {};

struct GpuSummary {
  std::string uuid;
  std::string name;
  int index = 0;
  std::vector<int> clocks_mhz;            // Ascending.
  std::optional<std::int64_t> owner_pid;  // The process that has the lease.
};

struct HelloAnswer {
  int version = kProtocolVersion;
  std::string program_version;  // Of Perseus. Empty: the agent does not say.
  bool observe = false;         // The agent sets no clock: every `set` is refused.
  // A client that sends nothing for so long loses its clocks (docs/explanation/agent.md).
  double max_silence_seconds = 0;
  std::vector<GpuSummary> gpus;
};

struct SetAnswer {
  int mhz = 0;  // The clock that was set: the nearest supported one.
  // Duration of the driver's call. 0: the clock was set already. None: superseded.
  std::optional<std::int64_t> took_us = {};
  bool superseded = false;  // A newer `set`, or the end of the lease, came first.
};

struct EnergyAnswer {
  double joules = 0;
  std::int64_t at_ns = 0;  // CLOCK_MONOTONIC right after the read.
};

struct ClockAnswer {
  int mhz = 0;
};

struct ConditionsAnswer {
  device::GpuConditions conditions;
  std::vector<std::string> conflicts;  // What acts against a locked clock.
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
  std::string last_error;         // Of the driver's newest call; empty: it succeeded.
  std::int64_t sets = 0;          // Driver calls that locked a clock.
  std::int64_t restores = 0;      // Driver calls that gave a clock back.
  std::int64_t failures = 0;      // Driver calls that failed.
  std::int64_t superseded = 0;    // `set` requests that a newer request replaced.
  std::vector<std::string> conflicts;
};

// Requests that were refused, by code.
struct RefusalCounts {
  std::int64_t held = 0;
  std::int64_t not_leased = 0;
  std::int64_t denied = 0;
  std::int64_t unknown_gpu = 0;
  std::int64_t bad_request = 0;
  std::int64_t device = 0;

  std::int64_t& Of(Refusal code);
};

struct StatusAnswer {
  std::int64_t pid = 0;
  std::string driver;  // As it was named: "nvml".
  bool observe = false;
  double uptime_seconds = 0;
  double max_silence_seconds = 0;
  double min_interval_seconds = 0;
  double poll_seconds = 0;  // How often conditions of GPUs with a locked clock are read.
  int connections = 0;
  std::int64_t leases = 0;  // That were given since the start.
  RefusalCounts refused;    // Since the start.
  std::vector<GpuStatus> gpus;
};

struct ReleaseAllAnswer {
  int released = 0;                 // Number of GPUs whose clocks were given back.
  std::vector<std::string> failed;  // A sentence for each GPU where that failed and is retried.
};

struct Answer {
  std::optional<std::int64_t> id;      // None: the request's id could not be read.
  std::optional<Operation> operation;  // None: the request's operation could not be read.
  std::variant<Refused, Done, HelloAnswer, SetAnswer, EnergyAnswer, ClockAnswer, ConditionsAnswer,
               StatusAnswer, ReleaseAllAnswer>
      body;
};

// One line each, with its line end.
std::string FormatRequest(const Request& request);
std::string FormatAnswer(const Answer& answer);

// A request that could not be read, with what its refusal needs.
struct RequestFault {
  std::optional<std::int64_t> id;
  std::string message;
};

// Parses one line, with or without its line end. Safe for any bytes. Fails if there are keys that
// the operation does not have.
tl::expected<Request, RequestFault> ParseRequest(std::string_view line);
// Ignores unknown keys, which newer agents may send.
Result<Answer> ParseAnswer(std::string_view line);

// Connects a blocking socket. kIo: no process listens, no permission, or the listener has accepted
// no connection within `patience` (for example, because the agent is stopped). Nor does a send take
// longer.
Result<FileDescriptor> ConnectUnix(const std::string& path, std::chrono::milliseconds patience);

// A connection to an agent that sends one request at a time and waits for its answer. Its errors
// name the agent. Not thread-safe.
class Control {
 public:
  // Connects within `patience` and sends the request hello. kIo: no answer within `answers` (0: as
  // `patience`), which is also the time limit of each Ask(). kDenied: the agent refuses.
  static Result<Control> Connect(const std::string& socket_path, const std::string& name,
                                 std::chrono::milliseconds patience,
                                 std::chrono::milliseconds answers = {});

  void set_patience(std::chrono::milliseconds patience) { patience_ = patience; }
  const HelloAnswer& hello() const { return hello_; }
  int descriptor() const { return socket_.get(); }

  // Sends a request with the next number and waits for its answer, which may be a refusal. Drops
  // answers to other requests. kIo: no answer came.
  Result<Answer> Ask(Request request);
  // The parts of Ask. Send returns the request's number.
  Result<std::int64_t> Send(Request request);
  Result<Answer> Receive();

 private:
  Control(std::string path, FileDescriptor socket, std::chrono::milliseconds patience)
      : path_(std::move(path)), socket_(std::move(socket)), patience_(patience) {}

  std::string path_;
  FileDescriptor socket_;
  std::chrono::milliseconds patience_;
  std::string buffer_;
  std::int64_t next_id_ = 1;
  HelloAnswer hello_;
};

}  // namespace perseus::agent

#endif  // PERSEUS_AGENT_PROTOCOL_H_
