// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_STORE_LINK_H_
#define PERSEUS_STORE_LINK_H_

#include <soci/soci.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "perseus/result.h"
#include "store/backend.h"

namespace perseus::store {

// Without a database, what waits for it is answered with an error after these.
inline constexpr double kWaitSeconds = 5;

// Why a transaction did not come to its end.
struct Failure {
  FaultKind kind = FaultKind::kFailed;
  // The connection went while the end was on its way: it may be written or not.
  bool is_unknown = false;
  Error error;
};

// One connection, opened again when it was lost. Thread-safe: one transaction at
// a time.
class Link {
 public:
  using Work = std::function<void(soci::session& sql)>;

  // `backend` outlives it.
  explicit Link(const Backend* backend) : backend_(backend) {}
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Runs `begin`, `work`, which may throw what SOCI throws, and COMMIT. nullopt:
  // all went well.
  std::optional<Failure> Try(const std::string& begin, const Work& work);

  // The same, tried again while the connection is lost or another transaction in
  // the way, for kWaitSeconds. `work` may be run more than once. Not after an
  // unknown end, unless `is_repeatable`.
  Result<void> Run(const std::string& begin, const Work& work, bool is_repeatable);

 private:
  void Drop();

  const Backend* const backend_;
  std::mutex mutex_;
  std::unique_ptr<soci::session> session_;
};

// How long to wait before the next try: doubles up to a limit.
class Backoff {
 public:
  std::chrono::milliseconds Next() {
    const auto now = next_;
    next_ = std::min(next_ * 2, kMost);
    return now;
  }

 private:
  static constexpr std::chrono::milliseconds kMost{2000};
  std::chrono::milliseconds next_{50};
};

}  // namespace perseus::store

#endif  // PERSEUS_STORE_LINK_H_
