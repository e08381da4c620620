// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLIENT_CLOCK_CALLER_H_
#define PERSEUS_CLIENT_CLOCK_CALLER_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/rank_conditions.h"
#include "device/device.h"
#include "perseus/result.h"

namespace perseus::client {

// The report of a node's agent, for the server, which never hears the agent itself.
struct AgentWord {
  std::string version;                 // Of its program. Empty: the agent does not say.
  std::vector<std::string> conflicts;  // What acts against the clock of this client's GPU.
};

// A device::Driver for the GPUs of a node's agent. The first clock call for a GPU takes its lease,
// which this driver keeps as long as it lives. If this process dies in any way, the agent gives the
// clock back. A clock call waits for the agent's answer (10 s at most).
//
// Thread-safe; calls wait for each other. Errors: kIo (no agent, no answer,
// connection lost: the next call connects anew, within 2 s), kDenied (somebody else has
// the lease, or the agent does not allow it). After an operator took the lease
// away, calls fail with kDenied: it is not taken again.
class AgentDriver : public device::Driver {
 public:
  // `socket`: "/run/perseus/agent.sock". `name`: a name of this client, for people.
  static Result<std::unique_ptr<AgentDriver>> Connect(const std::string& socket,
                                                      const std::string& name);

  // If this client makes no call for so long, the agent gives the clock back; 0: never.
  virtual double max_silence_seconds() const = 0;
  // How often the connection was lost. Each time, lease and clock were lost, too.
  virtual std::uint64_t losses() const = 0;
  virtual Result<void> Renew() = 0;  // Tells the agent that this process is alive.
};

// The socket of a device "agent:SOCKET"; none: another device.
std::optional<std::string> AgentSocketOf(const std::string& device);

// Asks the agent for its word on itself and on a GPU, by UUID, over a connection of its own, so
// that no clock call waits for the answer, which takes a few seconds at most.
Result<AgentWord> AskAgent(const std::string& socket, const std::string& name,
                           const std::string& gpu);

class AgentDriver;

// Opens the driver for `spec`: one of device::OpenDriver(), or "agent:SOCKET".
Result<std::unique_ptr<device::Driver>> OpenClientDriver(const std::string& spec,
                                                         const std::string& name);

// Whether `spec` can be the name of a device ("": none); nothing is opened.
Result<void> CheckDeviceSpec(const std::string& spec);

// The one GPU of a client. Sets its clock, measures how long that takes, and pauses after refused
// calls. Calls block as long as the driver does. For one thread.
class ClockCaller {
 public:
  // `shadow`: shadow mode. Calls set no clock and succeed at once.
  explicit ClockCaller(bool shadow) : shadow_(shadow) {}

  // Opens the driver and picks the GPU by UUID or, if that is empty, by index. Errors list the GPUs
  // that exist.
  Result<void> Open(const std::string& spec, const std::string& name, const std::string& uuid,
                    int index);
  bool open() const { return gpu_ != nullptr; }
  const device::GpuInfo& info() const { return gpu_->info(); }

  struct Outcome {
    bool ok = false;
    std::int64_t begin_ns = 0;
    std::int64_t effective_ns = 0;  // When the clock was in effect; if refused: the call's end.
    std::string error;
  };
  // Locks the clock, or gives it back (0). `in_driver_since` is set during the driver's call.
  Outcome Call(int mhz, std::atomic<std::int64_t>* in_driver_since);

  // Reads the energy counter; none: it cannot be read. Gives up after a few failures.
  std::optional<double> EnergyJoules();
  // The SM clock, and the conditions of the GPU that affect it; none: the device does not report
  // it.
  std::optional<int> ClockMhz();
  std::optional<device::GpuConditions> Conditions();
  bool energy_exhausted() const { return energy_failures_ >= kMaxEnergyFailures; }

  // Whether clock calls are paused. After kRefusalsToRest refusals in a row they are, for 30 s,
  // then 60 s, up to 10 minutes.
  bool resting(std::int64_t now_ns) const { return now_ns < rest_until_ns_; }
  // Sends the agent a sign of life if it is time to.
  void KeepAlive(std::int64_t now_ns);
  // Whether the agent may have given the clock back since it was set, because the connection was
  // lost or this process was silent for too long. Returns true once each time.
  bool TakeClockLost();

  const LatencyRecord& latency() const { return latency_; }
  std::uint64_t calls() const { return calls_; }
  std::uint64_t refused() const { return refused_; }
  double call_seconds() const { return call_seconds_; }

 private:
  static constexpr int kRefusalsToRest = 3;
  static constexpr int kMaxEnergyFailures = 3;
  // How often it is measured how long a clock takes to settle: each blocks for as long, or up to
  // 100 ms where the clock never does.
  static constexpr int kSettlingsOfClock = 4;
  // How often a clock may not be seen in effect until nobody looks for it any more, and all clocks
  // together.
  static constexpr int kNeverSettledOfClock = 2;
  static constexpr int kMostNeverSettled = 8;

  void MeasureSettling(int mhz);
  // To be called at each message to the device; notices if the last one was too long ago.
  void Speak(std::int64_t now_ns);

  bool shadow_;
  std::unique_ptr<device::Driver> driver_;
  AgentDriver* agent_ = nullptr;  // driver_ if that is an AgentDriver, else null.
  device::Gpu* gpu_ = nullptr;    // Of driver_.
  LatencyRecord latency_;
  std::uint64_t calls_ = 0;
  std::uint64_t refused_ = 0;
  double call_seconds_ = 0;
  int refusals_in_a_row_ = 0;
  std::int64_t rest_ns_ = 0;
  std::int64_t rest_until_ns_ = 0;
  int energy_failures_ = 0;
  std::map<int, int> never_settled_;  // By clock.
  int never_settled_of_all_ = 0;
  double max_silence_seconds_ = 0;
  std::int64_t last_said_ns_ = 0;
  std::uint64_t seen_losses_ = 0;  // Of agent_'s connection.
  bool clock_lost_ = false;
};

}  // namespace perseus::client

#endif  // PERSEUS_CLIENT_CLOCK_CALLER_H_
