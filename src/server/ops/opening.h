// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_OPS_OPENING_H_
#define PERSEUS_SERVER_OPS_OPENING_H_

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "common/file_descriptor.h"
#include "common/mutex.h"
#include "perseus/result.h"

namespace perseus::server {

// Runs the slow part of a start (recovery of a database, migration) on a thread of its own, so that
// the program answers requests and obeys signals meanwhile. Thread-safe.
class Opening {
 public:
  Opening();
  // Waits for the thread.
  ~Opening();
  Opening(const Opening&) = delete;
  Opening& operator=(const Opening&) = delete;

  // Starts `work`, once.
  void Start(std::function<Result<void>()> work);

  // To be called by `work`: one sentence about what it does now, which /readyz shows.
  void Say(std::string sentence);
  std::string sentence() const;
  bool keeps_going() const;

  void Cancel();
  // A file descriptor that becomes readable when `work` has ended.
  int descriptor() const { return ended_event_.get(); }
  // What `work` returned; nullopt: it still runs.
  std::optional<Result<void>> outcome() const;
  bool WaitForEnd(std::chrono::milliseconds patience);

 private:
  const FileDescriptor ended_event_;
  mutable Mutex mutex_;
  ConditionVariable changed_;
  std::string sentence_ PERSEUS_GUARDED_BY(mutex_) = "the server is starting";
  bool cancelled_ PERSEUS_GUARDED_BY(mutex_) = false;
  std::optional<Result<void>> outcome_ PERSEUS_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_OPS_OPENING_H_
