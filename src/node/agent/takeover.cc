// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "agent/takeover.h"

#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <set>
#include <utility>

#include "agent/release.h"

namespace perseus::agent {
namespace {

// Says what an earlier agent may have left locked; replaces a corrupt journal.
Result<std::vector<bool>> FindDirty(const device::Driver& driver, const Takeover& takeover,
                                    Log* log) {
  Journal* const journal = takeover.journal.get();
  std::vector<bool> is_dirty(driver.gpus().size());
  std::set<std::string> all;
  for (std::size_t i = 0; i < is_dirty.size(); ++i) {
    const std::string& uuid = driver.gpus()[i]->info().uuid;
    is_dirty[i] = journal->corruption() || journal->found().contains(uuid);
    all.insert(uuid);
    if (is_dirty[i]) {
      log->Write(LogLevel::kWarning, "restore_from_journal", {{"gpu", uuid}});
    } else if (takeover.claims[i]->marked()) {
      is_dirty[i] = true;
      log->Write(
          LogLevel::kWarning, "restore_from_gpu_lock",
          {{"gpu", uuid}, {"why", "an earlier agent with another journal locked its clock"}});
    }
  }
  for (const std::string& uuid : journal->found()) {
    if (all.contains(uuid)) continue;
    log->Write(
        LogLevel::kError, "journal_names_missing_gpu",
        {{"gpu", uuid},
         {"next",
          "its clock may still be locked; the journal names it until the driver shows it again"}});
  }
  if (journal->corruption()) {
    log->Write(
        LogLevel::kError, "journal_corrupt",
        {{"error", *journal->corruption()}, {"next", "the clocks of all GPUs are given back"}});
  }
  if (journal->unwritable()) return tl::unexpected(*journal->unwritable());
  if (!journal->corruption()) return is_dirty;
  if (auto replaced = journal->Replace(all); !replaced) return tl::unexpected(replaced.error());
  return is_dirty;
}

}  // namespace

Result<Takeover> TakeOver(const std::string& journal_path, const std::string& gpu_locks,
                          const std::shared_ptr<device::Driver>& driver,
                          std::chrono::milliseconds patience, Log* log) {
  Takeover takeover;
  {
    Result<Journal> journal = Journal::Open(journal_path);
    if (!journal) return tl::unexpected(journal.error());
    takeover.journal = std::make_unique<Journal>(*std::move(journal));
  }
  for (const auto& gpu : driver->gpus()) {
    Result<GpuClaim> claim = GpuClaim::Take(gpu_locks, gpu->info().uuid);
    if (!claim) return tl::unexpected(claim.error());
    takeover.claims.push_back(std::make_shared<GpuClaim>(*std::move(claim)));
  }
  Result<std::vector<bool>> is_dirty = FindDirty(*driver, takeover, log);
  if (is_dirty) {
    takeover.is_dirty = *std::move(is_dirty);
    return takeover;
  }
  takeover.journal.reset();  // ReleaseDirectly opens it anew, and claims anew.
  takeover.claims.clear();
  const ReleaseScope scope = {.gpu = "", .journaled = true, .gpu_locks = gpu_locks};
  const auto released = ReleaseDirectly(driver, journal_path, scope, patience);
  if (!released) {
    log->Write(LogLevel::kError, "not_restored", {{"error", released.error().message}});
    return tl::unexpected(is_dirty.error());
  }
  for (const std::string& sentence : released->failed) {
    log->Write(LogLevel::kError, "not_restored", {{"error", sentence}});
  }
  if (released->released > 0) {
    log->Write(LogLevel::kWarning, "restored",
               {{"gpus", fmt::format("{}", released->released)},
                {"next", "the agent does not start, as it cannot write its journal"}});
  }
  return tl::unexpected(is_dirty.error());
}

}  // namespace perseus::agent
