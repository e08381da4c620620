// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/simulated/simulated_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "device/nvml/nvml.h"
#include "device/simulated/simulated_config.h"
#include "device/simulated/simulated_file.h"

namespace perseus::device {
namespace {

GpuInfo InfoOf(const SimulatedGpuConfig& config, int index) {
  GpuInfo info;
  info.uuid = config.uuid.data();
  info.name = config.name.data();
  info.index = index;
  const auto& clocks = config.model.clocks_mhz;
  info.clocks_mhz.assign(clocks.begin(), clocks.begin() + config.model.clock_count);
  return info;
}

Result<void> CheckKernel(const Kernel& kernel) {
  if (kernel.empty()) return InvalidInput("a kernel needs one row of costs at least");
  for (const KernelCost& cost : kernel) {
    const bool good = cost.mhz > 0 && std::isfinite(cost.seconds) && cost.seconds > 0 &&
                      std::isfinite(cost.joules) && cost.joules >= 0;
    if (!good) {
      return InvalidInput(fmt::format("a kernel cannot cost {} s and {} J at {} MHz", cost.seconds,
                                      cost.joules, cost.mhz));
    }
  }
  return {};
}

// The cost at a clock. `kernel` ascends.
KernelCost CostAt(const Kernel& kernel, int mhz) {
  const auto above = std::find_if(kernel.begin(), kernel.end(),
                                  [mhz](const KernelCost& cost) { return cost.mhz >= mhz; });
  const KernelCost& high = above == kernel.end() ? kernel.back() : *above;
  const KernelCost& low = above == kernel.begin() || high.mhz <= mhz ? high : *(above - 1);
  const double share =
      high.mhz == low.mhz ? 0 : static_cast<double>(mhz - low.mhz) / (high.mhz - low.mhz);
  return {mhz, std::lerp(low.seconds, high.seconds, share),
          std::lerp(low.joules, high.joules, share)};
}

// The costs at each clock of the GPU. Where the kernel would draw more than `most_watts`, those at
// the highest lower clock at which it does not, or at the lowest of all.
void FillKernel(const Kernel& kernel, const ModelGpu& gpu, double most_watts, ModelKernel* costs) {
  const auto set = [&](int clock, KernelCost cost) {
    for (int lower = gpu.highest(); lower >= 0 && cost.joules > most_watts * cost.seconds;
         --lower) {
      if (gpu.MhzOf(lower) < cost.mhz) cost = CostAt(kernel, gpu.MhzOf(lower));
    }
    const auto i = static_cast<std::size_t>(clock);
    costs->seconds[i] = cost.seconds;
    costs->joules[i] = cost.joules;
    costs->mhz[i] = cost.mhz;
  };
  for (int clock = 0; clock < gpu.clock_count; ++clock)
    set(clock, CostAt(kernel, gpu.MhzOf(clock)));
  if (gpu.boost_mhz != 0) set(gpu.default_clock(), CostAt(kernel, gpu.boost_mhz));
}

// At any clock, at least.
bool DrawsIdlePower(const ModelKernel& kernel, const ModelGpu& gpu, double slowdown) {
  for (std::size_t i = 0; i <= static_cast<std::size_t>(gpu.default_clock()); ++i) {
    if (kernel.joules[i] < gpu.idle_watts * kernel.seconds[i] * slowdown) return false;
  }
  return true;
}

// A card at its power cap runs a kernel at a lower clock than is set.
int MhzNow(const ModelGpu& gpu, const ModelKernel& kernel, const ModelState& state) {
  return state.busy != 0 ? kernel.mhz[static_cast<std::size_t>(state.clock)]
                         : gpu.MhzOf(state.clock);
}

std::string UuidStem(const std::string& path) {
  return fmt::format("{:08x}", static_cast<std::uint32_t>(Fnv1a(path)));
}

}  // namespace

Result<void> CreateSimulatedGpus(const std::string& path, std::string_view config,
                                 const std::string& config_name) {
  const Result<SimulatedConfig> parsed = ParseSimulatedConfig(config, config_name, UuidStem(path));
  if (!parsed) return tl::unexpected(parsed.error());
  return SimulatedFile::Create(path, *parsed);
}

Result<std::unique_ptr<SimulatedGpus>> SimulatedGpus::Open(const std::string& path) {
  Result<std::unique_ptr<SimulatedFile>> file = SimulatedFile::Open(path);
  if (!file) return tl::unexpected(file.error());
  return std::unique_ptr<SimulatedGpus>(new SimulatedGpus(*std::move(file)));
}

SimulatedGpus::SimulatedGpus(std::unique_ptr<SimulatedFile> file) : file_(std::move(file)) {
  for (int gpu = 0; gpu < file_->count(); ++gpu) infos_.push_back(InfoOf(file_->config(gpu), gpu));
}

SimulatedGpus::~SimulatedGpus() = default;

int SimulatedGpus::count() const { return file_->count(); }
double SimulatedGpus::NowSeconds() const { return file_->NowSeconds(); }

SharedGpu& SimulatedGpus::shared(int gpu) { return file_->shared(gpu); }
const SimulatedGpuConfig& SimulatedGpus::config(int gpu) const { return file_->config(gpu); }

Result<void> SimulatedGpus::LockClock(int gpu, int mhz) {
  if (Result<void> known = CheckClock(info(gpu), mhz); !known) return known;
  const std::vector<int>& clocks = info(gpu).clocks_mhz;
  const auto found = std::lower_bound(clocks.begin(), clocks.end(), mhz);
  return Request(gpu, static_cast<int>(found - clocks.begin()));
}

Result<void> SimulatedGpus::ReleaseClock(int gpu) { return Request(gpu, -1); }

Result<void> SimulatedGpus::Request(int gpu, int clock) {
  double end = 0;
  {
    Result<GpuHold> hold = GpuHold::Take(*file_, gpu);
    if (!hold) return tl::unexpected(hold.error());
    ModelState& state = hold->state();
    double begin = state.at_seconds;
    if (file_->header().serial_calls != 0) {
      std::atomic<double>& free = file_->shared(0).driver_free_seconds;
      double seen = free.load();
      do {
        begin = std::max({seen, state.at_seconds, state.calls_end_seconds});
      } while (!free.compare_exchange_weak(seen, begin + hold->model().call_seconds));
    }
    end = RequestClock(hold->model(), clock, &state, begin);
    hold->Commit();
  }
  file_->SleepUntil(end);
  return {};
}

Result<SimulatedSnapshot> SimulatedGpus::Snapshot(int gpu) {
  Result<GpuHold> hold = GpuHold::Take(*file_, gpu);
  if (!hold) return tl::unexpected(hold.error());
  const ModelState& state = hold->state();
  const std::vector<int>& clocks = info(gpu).clocks_mhz;
  SimulatedSnapshot snapshot;
  snapshot.at_seconds = state.at_seconds;
  snapshot.clock_mhz = MhzNow(hold->model(), hold->kernel(), state);
  if (state.locked >= 0) snapshot.locked_mhz = clocks[static_cast<std::size_t>(state.locked)];
  snapshot.joules = state.joules;
  snapshot.counter_joules = state.counter_joules;
  snapshot.watts = ModelWatts(hold->model(), hold->kernel(), state);
  snapshot.busy = state.busy != 0;
  const auto& calls = file_->shared(gpu).calls;
  snapshot.set_calls = calls[static_cast<std::size_t>(SimulatedCall::kSetClock)];
  snapshot.reset_calls = calls[static_cast<std::size_t>(SimulatedCall::kResetClock)];
  return snapshot;
}

double SimulatedGpus::MostWatts(int gpu) const {
  const double limit = file_->shared(gpu).power_limit_milliwatts * 1e-3;
  return file_->config(gpu).capped != 0 && limit > 0 ? limit
                                                     : std::numeric_limits<double>::infinity();
}

GpuConditions SimulatedGpus::Conditions(int gpu) const {
  const SimulatedGpuConfig& config = file_->config(gpu);
  GpuConditions conditions;
  conditions.power_limit_watts = file_->shared(gpu).power_limit_milliwatts * 1e-3;
  conditions.default_power_limit_watts = config.default_power_limit_watts;
  conditions.temperature_celsius = config.temperature_celsius;
  if (!std::isnan(config.power_floor_watts))
    conditions.power_floor_watts = config.power_floor_watts;
  conditions.throttle_reasons = config.throttle_reasons;
  conditions.mig = config.mig != 0;
  for (unsigned profile = 0; profile < nvml::kPowerProfiles; ++profile) {
    if (config.power_profiles.Has(profile)) {
      conditions.power_profiles.push_back(PowerProfileName(profile));
    }
  }
  return conditions;
}

nvml::Return SimulatedGpus::CountCall(int gpu, SimulatedCall call) {
  const auto kind = static_cast<std::size_t>(call);
  SharedGpu& shared = file_->shared(gpu);
  const std::uint64_t calls = shared.calls[kind].fetch_add(1) + 1;
  if (shared.lost != 0) return nvml::kGpuIsLost;
  const bool sets = call == SimulatedCall::kSetClock || call == SimulatedCall::kResetClock;
  if (sets && refuses_sets(gpu)) return nvml::kNoPermission;
  const InjectedError& error = file_->config(gpu).errors[kind];
  if (error.every > 0 && calls % static_cast<std::uint64_t>(error.every) == 0) return error.code;
  return nvml::kSuccess;
}

bool SimulatedGpus::refuses_sets(int gpu) const { return file_->shared(gpu).refuse_sets != 0; }

Result<KernelLaunch> SimulatedGpus::LaunchKernel(int gpu, const Kernel& kernel,
                                                 std::optional<double> ready_seconds) {
  const Result<void> good = CheckKernel(kernel);
  if (!good) return tl::unexpected(good.error());
  Kernel sorted = kernel;
  std::sort(sorted.begin(), sorted.end(),
            [](const KernelCost& a, const KernelCost& b) { return a.mhz < b.mhz; });
  while (true) {
    std::uint32_t changes = 0;
    double end = 0;
    {
      Result<GpuHold> hold = GpuHold::Take(*file_, gpu);
      if (!hold) return tl::unexpected(hold.error());
      ModelState& state = hold->state();
      if (state.busy == 0) {
        ModelKernel& costs = hold->free_kernel();
        FillKernel(sorted, hold->model(), MostWatts(gpu), &costs);
        // Not where that would take energy back that somebody may have read.
        if (ready_seconds && DrawsIdlePower(costs, hold->model(), state.slowdown)) {
          hold->GoBack(*ready_seconds);
        }
        KernelLaunch launch;
        launch.id = BeginModelKernel(hold->FreeSlot(), &state);
        launch.start_mhz = MhzNow(hold->model(), costs, state);
        hold->Commit();
        return launch;
      }
      end = KernelEndSeconds(hold->model(), hold->kernel(), state);
      changes = hold->changes();
    }
    file_->WaitForChange(gpu, changes, end);
  }
}

Result<KernelRun> SimulatedGpus::WaitKernel(int gpu, const KernelLaunch& launch) {
  while (true) {
    std::uint32_t changes = 0;
    double end = 0;
    {
      Result<GpuHold> hold = GpuHold::Take(*file_, gpu);
      if (!hold) return tl::unexpected(hold.error());
      const ModelState& state = hold->state();
      if (state.kernel_id != launch.id || state.busy == 0) {
        const FinishedKernel& finished = state.finished[launch.id % kKeptKernels];
        if (launch.id == 0 || finished.id != launch.id) {
          return MakeError(ErrorCode::kIo,
                           fmt::format("other processes ran {} kernels on simulated "
                                       "GPU {} before this one could look at its own",
                                       kKeptKernels, gpu));
        }
        KernelRun run;
        run.seconds = finished.end_seconds - finished.begin_seconds;
        run.joules = finished.joules;
        run.start_mhz = launch.start_mhz;
        run.begin_seconds = finished.begin_seconds;
        run.end_seconds = finished.end_seconds;
        return run;
      }
      end = KernelEndSeconds(hold->model(), hold->kernel(), state);
      changes = hold->changes();
    }
    file_->WaitForChange(gpu, changes, end);
  }
}

Result<KernelRun> SimulatedGpus::RunKernel(int gpu, const Kernel& kernel,
                                           std::optional<double> ready_seconds) {
  const Result<KernelLaunch> launch = LaunchKernel(gpu, kernel, ready_seconds);
  if (!launch) return tl::unexpected(launch.error());
  return WaitKernel(gpu, *launch);
}

Kernel SimulatedGpus::ModelledKernel(int gpu, double seconds_at_highest_clock,
                                     double compute_share) const {
  const ModelGpu& model = file_->config(gpu).model;
  const std::vector<int>& clocks = info(gpu).clocks_mhz;
  Kernel kernel;
  for (std::size_t i = 0; i < clocks.size(); ++i) {
    const double slower = static_cast<double>(clocks.back()) / clocks[i];
    const double seconds =
        seconds_at_highest_clock * (compute_share * slower + (1 - compute_share));
    kernel.push_back({clocks[i], seconds, seconds * model.busy_watts[i]});
  }
  if (model.boost_mhz > clocks.back()) {
    const double slower = static_cast<double>(clocks.back()) / model.boost_mhz;
    const double seconds =
        seconds_at_highest_clock * (compute_share * slower + (1 - compute_share));
    const double busy = model.busy_watts[clocks.size() - 1] - model.idle_watts;
    const double watts = model.idle_watts + busy * std::pow(1 / slower, kPowerExponent);
    kernel.push_back({model.boost_mhz, seconds, seconds * watts});
  }
  return kernel;
}

Result<void> SimulatedGpus::SetSlowdown(int gpu, double times) {
  if (!std::isfinite(times) || times < 1e-3) {
    return InvalidInput(fmt::format("a slowdown is a number of at least 0.001, not {}", times));
  }
  Result<GpuHold> hold = GpuHold::Take(*file_, gpu);
  if (!hold) return tl::unexpected(hold.error());
  hold->state().slowdown = times;
  hold->Commit();
  return {};
}

void SimulatedGpus::SetRefuseSets(int gpu, bool refuse) {
  file_->shared(gpu).refuse_sets = refuse ? 1 : 0;
}

void SimulatedGpus::SetLost(int gpu, bool lost) { file_->shared(gpu).lost = lost ? 1 : 0; }

namespace {

class SimulatedGpu : public Gpu {
 public:
  SimulatedGpu(SimulatedGpus* gpus, int index) : gpus_(gpus), index_(index) {}

  const GpuInfo& info() const override { return gpus_->info(index_); }

  Result<void> LockClock(int mhz) override {
    Result<void> good = Try(SimulatedCall::kSetClock, "locking the clock");
    if (!good) return good;
    return gpus_->LockClock(index_, mhz);
  }

  Result<void> ReleaseClock() override {
    Result<void> good = Try(SimulatedCall::kResetClock, "releasing the clock");
    if (!good) return good;
    return gpus_->ReleaseClock(index_);
  }

  Result<int> ClockMhz() override {
    return Read(SimulatedCall::kClock, "reading the clock", &SimulatedSnapshot::clock_mhz);
  }
  Result<double> EnergyJoules() override {
    return Read(SimulatedCall::kEnergy, "reading the energy counter",
                &SimulatedSnapshot::counter_joules);
  }
  Result<double> PowerWatts() override {
    return Read(SimulatedCall::kPower, "reading the power", &SimulatedSnapshot::watts);
  }

  Result<GpuConditions> Conditions() override {
    const Result<void> good = Try(SimulatedCall::kConditions, "reading limits");
    if (!good) return tl::unexpected(good.error());
    return gpus_->Conditions(index_);
  }

 private:
  template <typename Figure>
  Result<Figure> Read(SimulatedCall call, const char* doing, Figure SimulatedSnapshot::*member) {
    const Result<void> good = Try(call, doing);
    if (!good) return tl::unexpected(good.error());
    const Result<SimulatedSnapshot> now = gpus_->Snapshot(index_);
    if (!now) return tl::unexpected(now.error());
    return (*now).*member;
  }
  Result<void> Try(SimulatedCall call, const char* doing) {
    const nvml::Return code = gpus_->CountCall(index_, call);
    if (code == nvml::kSuccess) return {};
    return tl::unexpected(NvmlError(code, fmt::format("{} of simulated GPU {}", doing, index_)));
  }

  SimulatedGpus* gpus_;
  int index_;
};

class SimulatedDriver : public Driver {
 public:
  explicit SimulatedDriver(std::unique_ptr<SimulatedGpus> gpus) : all_(std::move(gpus)) {
    for (int i = 0; i < all_->count(); ++i) {
      gpus_.push_back(std::make_unique<SimulatedGpu>(all_.get(), i));
    }
  }

  std::string_view kind() const override { return "simulated"; }
  const std::vector<std::unique_ptr<Gpu>>& gpus() const override { return gpus_; }

  Result<bool> MaySetClocks() override {
    for (int i = 0; i < all_->count(); ++i) {
      if (all_->refuses_sets(i)) return false;
    }
    return true;
  }

 private:
  std::unique_ptr<SimulatedGpus> all_;
  std::vector<std::unique_ptr<Gpu>> gpus_;
};

}  // namespace

Result<std::unique_ptr<Driver>> OpenSimulatedDriver(const std::string& path) {
  Result<std::unique_ptr<SimulatedGpus>> gpus = SimulatedGpus::Open(path);
  if (!gpus) return tl::unexpected(gpus.error());
  return std::make_unique<SimulatedDriver>(*std::move(gpus));
}

}  // namespace perseus::device
