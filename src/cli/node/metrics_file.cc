// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/node/metrics_file.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "common/file.h"

namespace perseus::cli {
namespace {

// Shorter than the usual interval of scrapes (15 s).
constexpr std::chrono::seconds kInterval(5);

}  // namespace

Result<void> MetricsFile::Check(const std::string& path) {
  if (path.empty() || path.ends_with(".prom")) return {};
  return InvalidInput(fmt::format(
      "--metrics-file {}: the name must end in .prom, as node_exporter reads no other files",
      path));
}

MetricsFile::MetricsFile(std::string path, Collect collect, std::shared_ptr<Log> log)
    : path_(std::move(path)), collect_(std::move(collect)), log_(std::move(log)) {}

Result<std::unique_ptr<MetricsFile>> MetricsFile::Start(std::string path, Collect collect,
                                                        std::shared_ptr<Log> log) {
  if (path.empty()) return nullptr;
  if (const Result<void> good = Check(path); !good) return tl::unexpected(good.error());
  if (const Result<void> good = CheckWritable(path); !good) return tl::unexpected(good.error());
  std::unique_ptr<MetricsFile> file(
      new MetricsFile(std::move(path), std::move(collect), std::move(log)));
  file->thread_ = std::thread([raw = file.get()] { raw->Run(); });
  return file;
}

MetricsFile::~MetricsFile() {
  {
    const MutexLock lock(mutex_);
    must_end_ = true;
  }
  wake_.NotifyOne();
  if (thread_.joinable()) thread_.join();
  std::error_code none;
  std::filesystem::remove(path_, none);
}

void MetricsFile::Run() {
  bool is_told = false;
  do {
    const Result<void> written = Write();
    if (!written && !std::exchange(is_told, true)) {
      log_->Write(LogLevel::kWarning, "metrics_failed", {{"error", written.error().message}});
    }
    if (written && std::exchange(is_told, false)) log_->Write(LogLevel::kInfo, "metrics_again", {});
  } while (!WaitForEnd());
}

Result<void> MetricsFile::Write() const {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  Result<metrics::Families> families = collect_(std::chrono::duration<double>(now).count());
  if (!families) return tl::unexpected(families.error());
  // Under another name first: a service's files are its own, and this one is for node_exporter.
  const std::string made = path_ + ".new";
  if (auto done = WriteFileAtomically(made, metrics::Text(*std::move(families))); !done) {
    return done;
  }
  using std::filesystem::perms;
  std::error_code error;
  std::filesystem::permissions(
      made, perms::owner_read | perms::owner_write | perms::group_read | perms::others_read, error);
  if (!error) std::filesystem::rename(made, path_, error);
  if (error) return MakeError(ErrorCode::kIo, fmt::format("{}: {}", path_, error.message()));
  return {};
}

bool MetricsFile::WaitForEnd() {
  const auto until = std::chrono::steady_clock::now() + kInterval;
  const MutexLock lock(mutex_);
  while (!must_end_) {
    if (!wake_.WaitUntil(mutex_, until)) break;
  }
  return must_end_;
}

}  // namespace perseus::cli
