// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_DEMO_FILES_H_
#define PERSEUS_CLI_DEMO_FILES_H_

#include <string>

namespace perseus::demo {

// The files of a demonstration, in its folder.
struct DemoFiles {
  std::string folder;

  std::string gpus() const { return folder + "/gpus.state"; }
  std::string socket() const { return folder + "/agent.sock"; }
  std::string journal() const { return folder + "/agent.journal"; }
  std::string store() const { return folder + "/store.db"; }
  std::string memory() const { return folder + "/trainers.state"; }
  std::string profile() const { return folder + "/profile.csv"; }
  std::string job() const { return folder + "/job.json"; }       // Body of POST /api/v1/jobs.
  std::string plan() const { return folder + "/plan.json"; }     // Of pipeline 0, at the end.
  std::string rounds() const { return folder + "/rounds.csv"; }  // What each iteration took.
  std::string server() const { return folder + "/server"; }      // Its address.
  std::string log(const std::string& of) const { return folder + "/" + of + ".log"; }
};

}  // namespace perseus::demo

#endif  // PERSEUS_CLI_DEMO_FILES_H_
