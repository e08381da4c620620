// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_NODE_LENT_GPUS_H_
#define PERSEUS_CLI_NODE_LENT_GPUS_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>

#include "device/device.h"
#include "perseus/result.h"

namespace perseus::cli {

// An agent in a process of its own, for the time of one examination. However this process ends, the
// agent gives all clocks back, as it does for trainers.
class OwnAgent {
 public:
  // Makes that process; call it while this one has no other thread and has opened no driver.
  // Errors: those of agent::Agent::Start() and of the driver.
  static Result<std::unique_ptr<OwnAgent>> Start(const std::string& driver);
  // Ends the process, which gives back what is still lent.
  ~OwnAgent();
  OwnAgent(const OwnAgent&) = delete;
  OwnAgent& operator=(const OwnAgent&) = delete;

  // A GPU that sets its clock through the agent, over a connection of its own, and reads what
  // `direct` reads. `direct` must outlive it.
  Result<std::unique_ptr<device::Gpu>> Lend(device::Gpu* direct) const;

 private:
  OwnAgent(std::string folder, pid_t process) : folder_(std::move(folder)), process_(process) {}

  const std::string folder_;
  const pid_t process_;
};

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_NODE_LENT_GPUS_H_
