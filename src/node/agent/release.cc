// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "agent/release.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "agent/gpu_worker.h"
#include "agent/journal.h"
#include "agent/protocol.h"
#include "common/numbers.h"

namespace perseus::agent {
namespace {

// An agent that is alive says hello at once.
constexpr auto kHelloPatience = std::chrono::milliseconds(1000);

// The UUID that `name`, a UUID or an index, stands for.
template <typename Gpus, typename Info>
Result<std::string> UuidOf(const Gpus& gpus, const std::string& name, const Info& info_of) {
  const std::optional<int> index = ParseInteger<int>(name);
  for (const auto& gpu : gpus) {
    const auto& info = info_of(gpu);
    if (info.uuid == name || index == info.index) return info.uuid;
  }
  return InvalidInput(fmt::format("--gpu: this node has no GPU '{}'", name));
}

Result<std::vector<device::Gpu*>> Chosen(const device::Driver& driver, const ReleaseScope& scope,
                                         const Journal* journal) {
  std::optional<std::string> only;
  if (!scope.gpu.empty()) {
    const auto uuid = UuidOf(driver.gpus(), scope.gpu,
                             [](const auto& gpu) -> const device::GpuInfo& { return gpu->info(); });
    if (!uuid) return tl::unexpected(uuid.error());
    only = *uuid;
  }
  std::vector<device::Gpu*> chosen;
  for (const auto& gpu : driver.gpus()) {
    const std::string& uuid = gpu->info().uuid;
    if (only && uuid != *only) continue;
    if (scope.journaled && journal != nullptr && !journal->corruption() &&
        !journal->found().contains(uuid)) {
      continue;
    }
    chosen.push_back(gpu.get());
  }
  return chosen;
}

// Waits for the outcomes of `gpus`; those that came in time.
std::vector<Outcome> Collect(Mailbox* mailbox, std::size_t gpus,
                             std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  std::vector<Outcome> outcomes;
  while (outcomes.size() < gpus) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) break;
    pollfd item = {mailbox->descriptor(), POLLIN, 0};
    ::poll(&item, 1, static_cast<int>(left.count()));
    for (Outcome& outcome : mailbox->TakeAll()) outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

// Takes GPUs whose clocks are back out of the journal. One that cannot be written
// costs a needless restore when the next agent starts.
void Strike(const std::set<std::string>& released, const device::Driver& driver, Journal* journal) {
  if (!journal->corruption()) {
    for (const std::string& uuid : released) {
      if (journal->found().contains(uuid)) static_cast<void>(journal->Remove(uuid));
    }
    return;
  }
  std::set<std::string> left;
  for (const auto& gpu : driver.gpus()) {
    if (!released.contains(gpu->info().uuid)) left.insert(gpu->info().uuid);
  }
  static_cast<void>(journal->Replace(left));
}

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

Result<ReleaseAllAnswer> ReleaseThroughAgent(const std::string& socket_path,
                                             const ReleaseScope& scope,
                                             std::chrono::milliseconds patience) {
  Result<Control> control = Control::Connect(socket_path, "perseus agent release", kHelloPatience);
  if (!control) return tl::unexpected(control.error());
  Request request;
  request.operation = Operation::kReleaseAll;
  if (!scope.gpu.empty()) {
    Result<std::string> uuid = UuidOf(
        control->hello().gpus, scope.gpu, [](const GpuSummary& gpu) -> const auto& { return gpu; });
    if (!uuid) return tl::unexpected(uuid.error());
    request.gpu = *std::move(uuid);
  }
  control->set_patience(patience);
  const Result<Answer> answer = control->Ask(std::move(request));
  if (!answer) return tl::unexpected(answer.error());
  if (const auto* refused = std::get_if<Refused>(&answer->body)) {
    return MakeError(ErrorCode::kDenied, refused->message);
  }
  if (const auto* released = std::get_if<ReleaseAllAnswer>(&answer->body)) return *released;
  return MakeError(ErrorCode::kIo, "the agent sent an unexpected answer");
}

Result<bool> JournalNamesGpus(const std::string& journal_path) {
  const auto is_missing = [](const std::string& path) {
    std::error_code ignored;
    return std::filesystem::symlink_status(path, ignored).type() ==
           std::filesystem::file_type::not_found;
  };
  // A lock without its journal is a journal that was lost.
  if (is_missing(journal_path) && is_missing(journal_path + ".lock")) return false;
  const Result<Journal> journal = Journal::Open(journal_path);
  if (!journal) return tl::unexpected(journal.error());
  return journal->corruption() || !journal->found().empty();
}

Result<ReleaseAllAnswer> ReleaseDirectly(const std::shared_ptr<device::Driver>& driver,
                                         const std::string& journal_path, const ReleaseScope& scope,
                                         std::chrono::milliseconds patience) {
  const Result<bool> may_set = driver->MaySetClocks();
  if (!may_set) return tl::unexpected(may_set.error());
  if (!*may_set) {
    return MakeError(ErrorCode::kDenied,
                     "no agent answers, and giving clocks back without it needs root or "
                     "CAP_SYS_ADMIN; try again with sudo");
  }
  Result<Journal> journal = Journal::Open(journal_path);
  if (!journal && scope.journaled) return tl::unexpected(journal.error());
  const auto chosen = Chosen(*driver, scope, journal ? &*journal : nullptr);
  if (!chosen) return tl::unexpected(chosen.error());
  const auto mailbox = std::make_shared<Mailbox>();
  const auto log = std::make_shared<Log>([](const std::string&) {});
  std::vector<std::unique_ptr<GpuWorker>> workers;
  std::set<std::string> waiting;
  std::map<std::string, GpuClaim> claims;
  for (device::Gpu* gpu : *chosen) {
    if (!scope.gpu_locks.empty()) {
      auto claim = GpuClaim::Take(scope.gpu_locks, gpu->info().uuid);
      if (claim) {
        claims.emplace(gpu->info().uuid, *std::move(claim));
      } else if (scope.journaled && claim.error().code == ErrorCode::kConflict) {
        continue;
      }
    }
    workers.push_back(std::make_unique<GpuWorker>(WorkerContext{driver, nullptr, log, mailbox, {}},
                                                  gpu, /*is_dirty=*/false));
    workers.back()->Release({1, 1, Operation::kReleaseAll}, /*force=*/true);
    waiting.insert(gpu->info().uuid);
  }
  ReleaseAllAnswer answer;
  std::set<std::string> released;
  for (const Outcome& outcome : Collect(mailbox.get(), workers.size(), patience)) {
    waiting.erase(outcome.gpu);
    if (const auto* refused = std::get_if<Refused>(&outcome.body)) {
      answer.failed.push_back(refused->message);
      continue;
    }
    ++answer.released;
    released.insert(outcome.gpu);
    if (const auto claim = claims.find(outcome.gpu); claim != claims.end()) {
      claim->second.Mark(false);
    }
  }
  for (const std::string& uuid : waiting) {
    answer.failed.push_back(fmt::format("GPU {}: the driver does not answer", uuid));
  }
  if (journal) Strike(released, *driver, &*journal);
  return answer;
}

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
