// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/simulated/simulated_gpu.h"

#include <fmt/format.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>  // NOLINT(modernize-deprecated-headers): clock_nanosleep.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>

#include "common/clocks.h"
#include "common/file.h"
#include "common/file_descriptor.h"
#include "common/nearest_name.h"
#include "device/nvml/nvml.h"
#include "device/simulated/simulated_config.h"

namespace perseus::device {
namespace {

constexpr std::array<char, 16> kMagic = {'p', 'e', 'r', 's', 'e', 'u', 's',
                                         ' ', 'g', 'p', 'u', 's', '\n'};
constexpr std::uint32_t kVersion = 4;
constexpr std::int64_t kNanoseconds = 1'000'000'000;
// A process holds the mutex for microseconds, unless it was stopped.
constexpr std::int64_t kMutexSeconds = 10;

static_assert(std::is_trivially_copyable_v<SharedHeader>);
static_assert(std::is_trivially_copyable_v<SimulatedGpuConfig>);
static_assert(std::is_trivially_copyable_v<ModelState>);

std::size_t ConfigsAt() { return (sizeof(SharedHeader) + 63) / 64 * 64; }
std::size_t GpusAt(std::size_t count) {
  return (ConfigsAt() + count * sizeof(SimulatedGpuConfig) + 63) / 64 * 64;
}
std::size_t FileBytes(std::size_t count) { return GpusAt(count) + count * sizeof(SharedGpu); }

timespec ToTimespec(std::int64_t nanoseconds) {
  return {nanoseconds / kNanoseconds, nanoseconds % kNanoseconds};
}

std::array<char, 40> BootId() {
  std::array<char, 40> id = {};
  const FileDescriptor file = OpenFile("/proc/sys/kernel/random/boot_id", O_RDONLY);
  if (file.valid() && read(file.get(), id.data(), id.size() - 1) < 0) id.fill('\0');
  return id;
}

std::uint64_t ConfigHash(const char* memory, std::size_t count) {
  return Fnv1a({memory + ConfigsAt(), count * sizeof(SimulatedGpuConfig)});
}

// Bytes of a new file, but for the mutexes.
std::string FirstBytes(const SimulatedConfig& config) {
  const std::size_t count = config.gpus.size();
  std::string bytes(FileBytes(count), '\0');
  for (std::size_t i = 0; i < count; ++i) {
    const SimulatedGpuConfig& gpu = config.gpus[i];
    std::memcpy(bytes.data() + ConfigsAt() + i * sizeof(gpu), &gpu, sizeof(gpu));
    ModelState state;
    state.clock = gpu.model.default_clock();
    state.slowdown = gpu.slowdown;
    const std::size_t at = GpusAt(count) + i * sizeof(SharedGpu) + offsetof(SharedGpu, states);
    std::memcpy(bytes.data() + at, &state, sizeof(state));
  }
  SharedHeader header = {};
  header.magic = kMagic;
  header.version = kVersion;
  header.gpu_count = static_cast<std::uint32_t>(count);
  header.file_bytes = bytes.size();
  header.boot_id = BootId();
  header.time_scale = config.time_scale;
  header.serial_calls = config.serial_calls ? 1 : 0;
  header.origin_ns = MonotonicNs();
  header.config_hash = ConfigHash(bytes.data(), count);
  std::memcpy(bytes.data(), &header, sizeof(header));
  return bytes;
}

void InitMutex(pthread_mutex_t* mutex) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

Error SystemFailure(const std::string& path, const char* doing) {
  return {ErrorCode::kIo, fmt::format("cannot {} the simulated GPUs' file {}: {}", doing,
                                      Shown(path), SystemMessage(errno))};
}

// Gone unless it was kept.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string path) : path_(std::move(path)) {}
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (!path_.empty()) unlink(path_.c_str());
  }
  const std::string& path() const { return path_; }
  void Keep() { path_.clear(); }

 private:
  std::string path_;
};

Result<void*> Map(const std::string& path, const FileDescriptor& file, std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return tl::unexpected(SystemFailure(path, "map"));
  return memory;
}

// The fault of a mapped file; empty: none.
std::string FaultOf(const SharedHeader& header, std::size_t bytes) {
  if (header.magic != kMagic) return "is no file of simulated GPUs";
  if (header.version != kVersion) {
    return fmt::format("is of version {}, and this program reads version {}", header.version,
                       kVersion);
  }
  const std::size_t count = header.gpu_count;
  if (count < 1 || count > kMaxSimulatedGpus || header.file_bytes != bytes ||
      FileBytes(count) != bytes) {
    return fmt::format("is cut short or damaged ({} bytes)", bytes);
  }
  if (header.boot_id != BootId()) return "was made before this machine was started";
  const auto* memory = reinterpret_cast<const char*>(&header);
  if (ConfigHash(memory, count) != header.config_hash) return "is damaged";
  return "";
}

}  // namespace

Result<void> SimulatedFile::Create(const std::string& path, const SimulatedConfig& config) {
  TemporaryFile temporary(fmt::format("{}.{}.new", path, getpid()));
  unlink(temporary.path().c_str());  // Of a process that died and had our number.
  FileDescriptor file = OpenFile(temporary.path(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
  if (!file.valid()) {
    Error error = SystemFailure(path, "make");
    temporary.Keep();  // Not ours.
    return tl::unexpected(std::move(error));
  }
  const std::string bytes = FirstBytes(config);
  for (std::size_t written = 0; written < bytes.size();) {
    const ssize_t now = write(file.get(), bytes.data() + written, bytes.size() - written);
    if (now < 0 && errno == EINTR) continue;
    if (now < 0) return tl::unexpected(SystemFailure(path, "write"));
    written += static_cast<std::size_t>(now);
  }
  const Result<void*> memory = Map(path, file, bytes.size());
  if (!memory) return tl::unexpected(memory.error());
  const SimulatedFile mapped(path, *memory, bytes.size());
  for (int gpu = 0; gpu < mapped.count(); ++gpu) {
    SharedGpu& shared = mapped.shared(gpu);
    InitMutex(&shared.mutex);
    shared.refuse_sets = static_cast<std::uint32_t>(mapped.config(gpu).refuse_sets);
    shared.lost = static_cast<std::uint32_t>(mapped.config(gpu).lost);
    const double limit = mapped.config(gpu).power_limit_watts;
    shared.power_limit_milliwatts = static_cast<std::uint32_t>(std::lround(limit * 1e3));
  }
  if (rename(temporary.path().c_str(), path.c_str()) != 0) {
    return tl::unexpected(SystemFailure(path, "make"));
  }
  temporary.Keep();
  return {};
}

Result<std::unique_ptr<SimulatedFile>> SimulatedFile::Open(const std::string& path) {
  const FileDescriptor file = OpenFile(path, O_RDWR | O_NOCTTY | O_NONBLOCK);
  if (!file.valid()) {
    const bool is_absent = errno == ENOENT;
    Error error = SystemFailure(path, "open");
    if (is_absent) error.message += "; 'python3 -m perseus.simulate create FILE' makes one";
    return tl::unexpected(std::move(error));
  }
  struct stat status = {};
  if (fstat(file.get(), &status) != 0) return tl::unexpected(SystemFailure(path, "open"));
  const auto bytes = static_cast<std::size_t>(status.st_size);
  std::string fault = "is no file of simulated GPUs";
  if (S_ISREG(status.st_mode) && bytes >= sizeof(SharedHeader) &&
      bytes <= FileBytes(kMaxSimulatedGpus)) {
    const Result<void*> memory = Map(path, file, bytes);
    if (!memory) return tl::unexpected(memory.error());
    std::unique_ptr<SimulatedFile> mapped(new SimulatedFile(path, *memory, bytes));
    fault = FaultOf(mapped->header(), bytes);
    if (fault.empty()) return mapped;
  }
  return InvalidInput(
      fmt::format("{} {}; make it anew from its configuration "
                  "(docs/how-to/simulated-gpus.md)",
                  Shown(path), fault));
}

SimulatedFile::~SimulatedFile() { munmap(memory_, bytes_); }

const SimulatedGpuConfig& SimulatedFile::config(int gpu) const {
  const char* at = static_cast<const char*>(memory_) + ConfigsAt();
  return reinterpret_cast<const SimulatedGpuConfig*>(at)[gpu];
}

SharedGpu& SimulatedFile::shared(int gpu) const {
  char* at = static_cast<char*>(memory_) + GpusAt(header().gpu_count);
  return reinterpret_cast<SharedGpu*>(at)[gpu];
}

double SimulatedFile::NowSeconds() const {
  const std::int64_t passed = MonotonicNs() - header().origin_ns;
  return static_cast<double>(passed) * 1e-9 * header().time_scale;
}

namespace {

// Whether every index is inside its array, whatever wrote into the file.
bool IsSane(const ModelGpu& gpu, const ModelState& state) {
  const auto is_clock = [&](std::int32_t clock) {
    return clock >= 0 && (clock < gpu.clock_count || clock == gpu.default_clock());
  };
  if (!is_clock(state.clock) || state.locked >= gpu.clock_count) return false;
  if (state.kernel_slot < 0 || state.kernel_slot > 1) return false;
  if (state.pending_count < 0 || state.pending_count > kMaxPendingClocks) return false;
  return std::all_of(state.pending.begin(), state.pending.begin() + state.pending_count,
                     [&](const PendingClock& pending) { return is_clock(pending.clock); });
}

// Rounded up: who wakes then is not too early.
timespec WakeTime(const SharedHeader& header, double seconds) {
  constexpr double kYears = 1e9;
  const double real = std::min(seconds / header.time_scale, kYears);
  return ToTimespec(header.origin_ns + static_cast<std::int64_t>(std::ceil(real * 1e9)));
}

}  // namespace

void SimulatedFile::SleepUntil(double seconds) const {
  const timespec until = WakeTime(header(), seconds);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

void SimulatedFile::WaitForChange(int gpu, std::uint32_t changes, double until_seconds) const {
  const timespec until = WakeTime(header(), until_seconds);
  syscall(SYS_futex, &shared(gpu).changes, FUTEX_WAIT_BITSET, changes, &until, nullptr,
          FUTEX_BITSET_MATCH_ANY);
}

namespace {

// 0 or EOWNERDEAD: it is ours. It is held for microseconds, so that trying again
// is as quick as a queue; and pthread_mutex_trylock is what ThreadSanitizer knows of
// robust mutexes with a time limit (g++ 12).
int LockWithPatience(pthread_mutex_t* mutex) {
  constexpr int kQuickTries = 20;
  constexpr timespec kPause = {0, 50'000};
  const std::int64_t start = MonotonicNs();
  for (int tries = 0;; ++tries) {
    const int error = pthread_mutex_trylock(mutex);
    if (error != EBUSY) return error;
    if (MonotonicNs() - start > kMutexSeconds * kNanoseconds) return ETIMEDOUT;
    if (tries < kQuickTries) {
      sched_yield();
    } else {
      nanosleep(&kPause, nullptr);
    }
  }
}

}  // namespace

Result<GpuHold> GpuHold::Take(const SimulatedFile& file, int gpu) {
  SharedGpu& shared = file.shared(gpu);
  const int error = LockWithPatience(&shared.mutex);
  // Take over from a dead holder. Its uncommitted changes do not count.
  if (error == EOWNERDEAD) pthread_mutex_consistent(&shared.mutex);
  if (error != 0 && error != EOWNERDEAD) {
    return MakeError(ErrorCode::kIo,
                     fmt::format("simulated GPU {} of {} is held by a process that does not go on "
                                 "({}); end that process",
                                 gpu, Shown(file.path()), SystemMessage(error)));
  }
  GpuHold hold(&shared, &file.config(gpu));
  if (!IsSane(hold.model(), hold.state_)) {
    return MakeError(
        ErrorCode::kIo,
        fmt::format("the state of simulated GPU {} in {} is damaged; make the file anew", gpu,
                    Shown(file.path())));
  }
  AdvanceModel(hold.model(), hold.kernel(), file.NowSeconds(), &hold.state_);
  return hold;
}

GpuHold::GpuHold(SharedGpu* shared, const SimulatedGpuConfig* config)
    : shared_(shared), config_(config), state_(shared->states[shared->current & 1]) {}

GpuHold::GpuHold(GpuHold&& other) noexcept
    : shared_(std::exchange(other.shared_, nullptr)),
      config_(other.config_),
      state_(other.state_) {}

GpuHold::~GpuHold() {
  if (shared_ != nullptr) pthread_mutex_unlock(&shared_->mutex);
}

const ModelKernel& GpuHold::kernel() const {
  return shared_->kernels[static_cast<std::size_t>(state_.kernel_slot)];
}

ModelKernel& GpuHold::free_kernel() {
  return shared_->kernels[static_cast<std::size_t>(FreeSlot())];
}

void GpuHold::GoBack(double seconds) {
  const double now = state_.at_seconds;
  ModelState then = shared_->states[shared_->current & 1];
  AdvanceModel(model(), kernel(), std::min(seconds, now), &then);
  if (then.busy != 0) {
    AdvanceModel(model(), kernel(), std::min(KernelEndSeconds(model(), kernel(), then), now),
                 &then);
  }
  state_ = then;
}

std::uint32_t GpuHold::changes() const { return shared_->changes; }

void GpuHold::Commit() {
  const std::uint32_t next = 1 - (shared_->current & 1);
  shared_->states[next] = state_;
  shared_->current.store(next, std::memory_order_release);
  shared_->changes.fetch_add(1);
  syscall(SYS_futex, &shared_->changes, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

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
