// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/zeusd/zeusd_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "common/mutex.h"
#include "common/nearest_name.h"
#include "common/tree.h"
#include "common/tree_reader.h"
#include "device/nvml/nvml_driver.h"
#include "device/zeusd/unix_http.h"

namespace perseus::device {
namespace {

// zeusd waits for the driver's call; a driver that hangs must not hang us.
constexpr double kDeadlineSeconds = 10;

// What /discover says.
struct Discovery {
  std::vector<std::string> gpu_names;  // By zeusd's number.
  bool controls_gpus = false;
  bool needs_token = false;
};

class Zeusd {
 public:
  explicit Zeusd(const std::string& path) : path_(path.empty() ? "/run/zeusd/zeusd.sock" : path) {
    if (const char* token = std::getenv("ZEUSD_TOKEN")) token_ = token;
  }

  const std::string& path() const { return path_; }
  bool has_token() const { return !token_.empty(); }

  // The body of a good answer. `doing`: "locking the clock of GPU 3".
  Result<std::string> Ask(const std::string& method_and_target, const std::string& doing) const {
    const bool clean = std::all_of(token_.begin(), token_.end(), [](char c) { return c > ' '; });
    if (!clean) return InvalidInput("the token in ZEUSD_TOKEN has spaces or control characters");
    Result<HttpAnswer> answer = AskUnixHttp(path_, method_and_target, token_, kDeadlineSeconds);
    if (!answer) {
      return MakeError(answer.error().code,
                       fmt::format("{} through zeusd failed: {}", doing, answer.error().message));
    }
    if (answer->status == 200) return std::move(answer->body);
    const bool denied = answer->status == 401 || answer->status == 403;
    return MakeError(denied ? ErrorCode::kDenied : ErrorCode::kIo,
                     fmt::format("{} through zeusd failed: it answers {} {}{}", doing,
                                 answer->status, Shown(answer->body),
                                 denied ? "; give a token with the scope of GPU control in "
                                          "ZEUSD_TOKEN"
                                        : ""));
  }

  Result<Discovery> Discover() const {
    const Result<std::string> body = Ask("GET /discover", "finding GPUs");
    if (!body) return tl::unexpected(body.error());
    const std::string name = fmt::format("the answer of zeusd at {}", Shown(path_));
    const Result<TreeNode> tree = ParseJsonTree(*body, name);
    if (!tree) return MakeError(ErrorCode::kIo, tree.error().message);
    TreeReader reader(*tree, name);
    const TreeCursor root = reader.Root();
    Discovery found;
    const TreeCursor gpus = root.Get("gpus");
    for (std::size_t i = 0; i < gpus.Size(); ++i) {
      const auto id = static_cast<std::size_t>(gpus.At(i).Get("id").Integer(0, 1023));
      found.gpu_names.resize(std::max(found.gpu_names.size(), id + 1));
      found.gpu_names[id] = gpus.At(i).Get("name").String();
    }
    const TreeCursor groups = root.Get("enabled_api_groups");
    for (std::size_t i = 0; i < groups.Size(); ++i) {
      found.controls_gpus = found.controls_gpus || groups.At(i).String() == "gpu-control";
    }
    found.needs_token = root.Get("auth_required").Bool();
    if (reader.failed()) return MakeError(ErrorCode::kIo, reader.error()->message);
    return found;
  }

 private:
  std::string path_;
  std::string token_;
};

class ZeusdGpu : public Gpu {
 public:
  ZeusdGpu(const Zeusd* zeusd, Gpu* reads) : zeusd_(zeusd), reads_(reads) {}

  const GpuInfo& info() const override { return reads_->info(); }

  Result<void> LockClock(int mhz) override {
    const std::vector<int>& clocks = info().clocks_mhz;
    if (!std::binary_search(clocks.begin(), clocks.end(), mhz)) {
      return InvalidInput(
          fmt::format("GPU {} has no clock of {} MHz; its clocks go from {} to {} "
                      "MHz",
                      info().index, mhz, clocks.front(), clocks.back()));
    }
    return Set("locking the clock",
               fmt::format("POST /gpu/set_gpu_locked_clocks?gpu_ids={}&min_clock_mhz={}&"
                           "max_clock_mhz={}&block=true",
                           info().index, mhz, mhz));
  }

  Result<void> ReleaseClock() override {
    return Set(
        "releasing the clock",
        fmt::format("POST /gpu/reset_gpu_locked_clocks?gpu_ids={}&block=true", info().index));
  }

  Result<int> ClockMhz() override { return reads_->ClockMhz(); }
  Result<double> EnergyJoules() override { return reads_->EnergyJoules(); }
  Result<double> PowerWatts() override { return reads_->PowerWatts(); }
  Result<GpuConditions> Conditions() override { return reads_->Conditions(); }

 private:
  Result<void> Set(const char* doing, const std::string& request) {
    const MutexLock lock(mutex_);
    const Result<std::string> done =
        zeusd_->Ask(request, fmt::format("{} of GPU {}", doing, info().index));
    if (!done) return tl::unexpected(done.error());
    return {};
  }

  const Zeusd* zeusd_;
  Gpu* reads_;
  Mutex mutex_;  // One change of this GPU's clock at a time.
};

class ZeusdDriver : public Driver {
 public:
  ZeusdDriver(Zeusd zeusd, std::unique_ptr<Driver> reads, bool may_set)
      : zeusd_(std::move(zeusd)), reads_(std::move(reads)), may_set_(may_set) {
    for (const auto& gpu : reads_->gpus()) {
      gpus_.push_back(std::make_unique<ZeusdGpu>(&zeusd_, gpu.get()));
    }
  }

  std::string_view kind() const override { return "zeusd"; }
  const std::vector<std::unique_ptr<Gpu>>& gpus() const override { return gpus_; }
  std::vector<std::string> faults() const override { return reads_->faults(); }
  Result<bool> MaySetClocks() override { return may_set_; }

 private:
  Zeusd zeusd_;
  std::unique_ptr<Driver> reads_;
  bool may_set_;
  std::vector<std::unique_ptr<Gpu>> gpus_;
};

}  // namespace

Result<std::unique_ptr<Driver>> OpenZeusdDriver(const std::string& path) {
  Zeusd zeusd(path);
  const Result<Discovery> found = zeusd.Discover();
  if (!found) return tl::unexpected(found.error());
  Result<std::unique_ptr<Driver>> reads = OpenNvmlDriver("");
  if (!reads) return reads;
  // zeusd knows GPUs by number alone. In a container, or under a batch system, the
  // numbers here may be others, and then we would set the clocks of somebody else.
  for (const auto& gpu : (*reads)->gpus()) {
    const auto index = static_cast<std::size_t>(gpu->info().index);
    const bool all_seen =
        (*reads)->gpus().size() + (*reads)->faults().size() == found->gpu_names.size();
    if (!all_seen || found->gpu_names[index] != gpu->info().name) {
      return MakeError(
          ErrorCode::kIo,
          fmt::format("zeusd at {} sees other GPUs than this process, and knows them by number "
                      "only: run where all GPUs of the node are seen, or use 'perseus agent'",
                      Shown(zeusd.path())));
    }
  }
  const bool may_set = found->controls_gpus && (!found->needs_token || zeusd.has_token());
  return std::make_unique<ZeusdDriver>(std::move(zeusd), *std::move(reads), may_set);
}

}  // namespace perseus::device
