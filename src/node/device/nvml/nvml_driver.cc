// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <dlfcn.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/mutex.h"
#include "common/nearest_name.h"
#include "common/numbers.h"
#include "device/device.h"
#include "device/library_symbols.h"
#include "device/nvml/nvml.h"

// NVIDIA's GPUs: the loaded library, one GPU behind it, and the driver of all.

namespace perseus::device {
namespace {

// NVML's functions, each the first of these names that the library has: the newest version whose
// arguments are these. There is none here that sets memory clocks or power limits.
struct NvmlFunctions {
  explicit NvmlFunctions(void* library) : symbols{library} {}

  LibrarySymbols symbols;
  nvml::Return (*init)() = symbols.Find({"nvmlInit_v2", "nvmlInit"});
  nvml::Return (*shutdown)() = symbols.Find({"nvmlShutdown"});
  nvml::Return (*get_driver_version)(char*,
                                     unsigned) = symbols.Find({"nvmlSystemGetDriverVersion"});
  nvml::Return (*device_get_count)(unsigned*) = symbols.Find({"nvmlDeviceGetCount_v2",
                                                              "nvmlDeviceGetCount"});
  nvml::Return (*device_get_handle_by_index)(unsigned, nvml::Device*) =
      symbols.Find({"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"});
  nvml::Return (*device_get_name)(nvml::Device, char*,
                                  unsigned) = symbols.Find({"nvmlDeviceGetName"});
  nvml::Return (*device_get_uuid)(nvml::Device, char*,
                                  unsigned) = symbols.Find({"nvmlDeviceGetUUID"});
  nvml::Return (*get_memory_clocks)(nvml::Device, unsigned*, unsigned*) =
      symbols.Find({"nvmlDeviceGetSupportedMemoryClocks"});
  nvml::Return (*get_graphics_clocks)(nvml::Device, unsigned, unsigned*, unsigned*) =
      symbols.Find({"nvmlDeviceGetSupportedGraphicsClocks"});
  nvml::Return (*get_max_clock)(nvml::Device, unsigned,
                                unsigned*) = symbols.Find({"nvmlDeviceGetMaxClockInfo"});
  nvml::Return (*get_clock)(nvml::Device, unsigned,
                            unsigned*) = symbols.Find({"nvmlDeviceGetClockInfo"});
  nvml::Return (*set_locked_clocks)(nvml::Device, unsigned,
                                    unsigned) = symbols.Find({"nvmlDeviceSetGpuLockedClocks"});
  nvml::Return (*reset_locked_clocks)(nvml::Device) =
      symbols.Find({"nvmlDeviceResetGpuLockedClocks"});
  nvml::Return (*get_energy)(nvml::Device, unsigned long long*) =
      symbols.Find({"nvmlDeviceGetTotalEnergyConsumption"});
  nvml::Return (*get_power)(nvml::Device, unsigned*) = symbols.Find({"nvmlDeviceGetPowerUsage"});
  nvml::Return (*get_enforced_limit)(nvml::Device,
                                     unsigned*) = symbols.Find({"nvmlDeviceGetEnforcedPowerLimit"});
  nvml::Return (*get_default_limit)(nvml::Device, unsigned*) =
      symbols.Find({"nvmlDeviceGetPowerManagementDefaultLimit"});
  nvml::Return (*get_temperature)(nvml::Device, unsigned,
                                  unsigned*) = symbols.Find({"nvmlDeviceGetTemperature"});
  nvml::Return (*get_throttle_reasons)(nvml::Device, unsigned long long*) = symbols.Find(
      {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"});
  nvml::Return (*get_mig_mode)(nvml::Device, unsigned*,
                               unsigned*) = symbols.Find({"nvmlDeviceGetMigMode"});
  nvml::Return (*get_field_values)(nvml::Device, int,
                                   nvml::FieldValue*) = symbols.Find({"nvmlDeviceGetFieldValues"});
  nvml::Return (*get_power_profiles)(nvml::Device, nvml::CurrentPowerProfiles*) =
      symbols.Find({"nvmlDeviceWorkloadPowerProfileGetCurrentProfiles"});

  bool HasWhatIsNeeded() const {
    return init != nullptr && shutdown != nullptr && device_get_count != nullptr &&
           device_get_handle_by_index != nullptr && device_get_name != nullptr &&
           device_get_uuid != nullptr;
  }
};

int DriverBranch(const NvmlFunctions& functions) {
  std::array<char, 80> version = {};
  constexpr auto kSize = static_cast<unsigned>(version.size() - 1);
  if (functions.get_driver_version == nullptr ||
      functions.get_driver_version(version.data(), kSize) != nvml::kSuccess) {
    return 0;
  }
  const std::string_view text = version.data();
  return ParseInteger<int>(text.substr(0, text.find('.'))).value_or(0);
}

// A loaded and initialised library; shut down and unloaded with the object, but
// not in a child that was forked. Immutable.
class NvmlLibrary {
 public:
  // `path` empty: libnvidia-ml.so.1. Errors: kIo, kDenied.
  static Result<std::shared_ptr<const NvmlLibrary>> Load(const std::string& path) {
    const std::string name = path.empty() ? "libnvidia-ml.so.1" : path;
    void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* why = dlerror();
      return MakeError(
          ErrorCode::kIo,
          fmt::format("cannot load NVIDIA's library {}: {}. It comes with the NVIDIA driver; a "
                      "container sees it when it is started with its GPUs ('--gpus all')",
                      Shown(name), why != nullptr ? why : "no reason given"));
    }
    std::shared_ptr<NvmlLibrary> library(new NvmlLibrary(handle));
    if (!library->functions_.HasWhatIsNeeded()) {
      return MakeError(ErrorCode::kIo, fmt::format("{} is no NVML: it lacks functions that every "
                                                   "version has",
                                                   Shown(name)));
    }
    const nvml::Return code = library->functions_.init();
    if (code != nvml::kSuccess) return tl::unexpected(NvmlError(code, "starting NVML"));
    library->initialised_ = true;
    library->driver_branch_ = DriverBranch(library->functions_);
    return library;
  }

  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;
  ~NvmlLibrary() {
    if (!InOwnProcess()) return;  // The parent's connection: neither ours to close nor to unload.
    if (initialised_) functions_.shutdown();
    dlclose(functions_.symbols.library);
  }

  const NvmlFunctions& functions() const { return functions_; }
  // 580 of "580.82.07"; 0: it does not tell.
  int driver_branch() const { return driver_branch_; }
  // Whether this is the process that loaded it. NVML's handles are connections to
  // the driver, which a child cannot use.
  bool InOwnProcess() const { return getpid() == process_; }

 private:
  explicit NvmlLibrary(void* handle) : functions_(handle), process_(getpid()) {}

  NvmlFunctions functions_;
  int process_;
  int driver_branch_ = 0;
  bool initialised_ = false;
};

constexpr double kMilli = 1e-3;
constexpr unsigned kMostClocks = 1024;
// Beside NVML's own codes: this process was forked from the one that opened the GPU.
constexpr nvml::Return kForked = -1;

// After these every other call fails, too.
bool IsGone(nvml::Return code) {
  return code == kForked || code == nvml::kUninitialized || code == nvml::kDriverNotLoaded ||
         code == nvml::kGpuIsLost || code == nvml::kResetRequired;
}

double NumberOf(const nvml::FieldValue& field) {
  switch (field.value_type) {
    case nvml::kTypeDouble:
      return field.value.d;
    case nvml::kTypeUnsigned:
      return field.value.ui;
    default:
      return static_cast<double>(field.value.ull);
  }
}

// NVML's way to return lists: first their size.
template <typename Ask>
std::vector<unsigned> ListOf(const Ask& ask) {
  unsigned count = 0;
  const nvml::Return code = ask(&count, nullptr);
  if (code != nvml::kInsufficientSize || count == 0 || count > kMostClocks) return {};
  std::vector<unsigned> list(count);
  if (ask(&count, list.data()) != nvml::kSuccess || count > list.size()) return {};
  list.resize(count);
  return list;
}

// Whether this process may set clocks, as the last such call showed.
enum class SetRight : std::uint8_t { kUntried, kGranted, kDenied };

// One GPU behind NVML, which is thread-safe itself.
class NvmlGpu : public Gpu {
 public:
  // Errors: what NVML says of this GPU.
  static Result<std::unique_ptr<NvmlGpu>> Open(std::shared_ptr<const NvmlLibrary> library,
                                               unsigned index) {
    nvml::Device device = nullptr;
    const nvml::Return code = library->functions().device_get_handle_by_index(index, &device);
    if (code != nvml::kSuccess) {
      return tl::unexpected(NvmlError(code, fmt::format("opening GPU {}", index)));
    }
    std::unique_ptr<NvmlGpu> gpu(new NvmlGpu(std::move(library), device, index));
    const Result<void> read = gpu->ReadInfo();
    if (!read) return tl::unexpected(read.error());
    return gpu;
  }

  const GpuInfo& info() const override { return info_; }
  Result<void> LockClock(int mhz) override {
    if (Result<void> known = CheckClock(info_, mhz); !known) return known;
    const auto clock = static_cast<unsigned>(mhz);
    const MutexLock lock(set_mutex_);
    Result<void> set = Call("locking the clock", nvml().set_locked_clocks, clock, clock);
    LearnRight(set);
    return set;
  }

  Result<void> ReleaseClock() override {
    const MutexLock lock(set_mutex_);
    Result<void> reset = Call("releasing the clock", nvml().reset_locked_clocks);
    LearnRight(reset);
    return reset;
  }

  Result<int> ClockMhz() override {
    unsigned mhz = 0;
    const Result<void> read = Call("reading the clock", nvml().get_clock, nvml::kClockSm, &mhz);
    if (!read) return tl::unexpected(read.error());
    return static_cast<int>(mhz);
  }

  Result<double> EnergyJoules() override {
    unsigned long long millijoules = 0;
    const Result<void> read = Call("reading the energy counter", nvml().get_energy, &millijoules);
    if (!read) return tl::unexpected(read.error());
    return static_cast<double>(millijoules) * kMilli;
  }

  Result<double> PowerWatts() override {
    // Prefer the power now: the older function averages over up to a second.
    if (has_instant_power_) {
      const Result<std::optional<double>> now = ReadField(nvml::kFieldPowerInstant);
      if (!now) return tl::unexpected(now.error());
      if (*now) return **now * kMilli;
      has_instant_power_ = false;
    }
    unsigned milliwatts = 0;
    const Result<void> read = Call("reading the power", nvml().get_power, &milliwatts);
    if (!read) return tl::unexpected(read.error());
    return milliwatts * kMilli;
  }

  Result<GpuConditions> Conditions() override {
    GpuConditions conditions;
    const Result<std::optional<double>> limit = ReadMilliwatts(nvml().get_enforced_limit);
    if (!limit) return tl::unexpected(limit.error());
    conditions.power_limit_watts = *limit;
    const Result<std::optional<double>> default_limit = ReadMilliwatts(nvml().get_default_limit);
    if (!default_limit) return tl::unexpected(default_limit.error());
    conditions.default_power_limit_watts = *default_limit;

    unsigned celsius = 0;
    const Result<bool> warm = Ask(nvml().get_temperature, nvml::kTemperatureGpu, &celsius);
    if (!warm) return tl::unexpected(warm.error());
    if (*warm) conditions.temperature_celsius = celsius;

    unsigned long long reasons = 0;
    const Result<bool> throttled = Ask(nvml().get_throttle_reasons, &reasons);
    if (!throttled) return tl::unexpected(throttled.error());
    if (*throttled) conditions.throttle_reasons = reasons;

    unsigned mode = 0;
    unsigned pending = 0;
    const Result<bool> mig = Ask(nvml().get_mig_mode, &mode, &pending);
    if (!mig) return tl::unexpected(mig.error());
    conditions.mig = *mig && mode != 0;

    const Result<void> profiles = ReadPowerProfiles(&conditions);
    if (!profiles) return tl::unexpected(profiles.error());

    const nvml::SmoothingFields smoothing = nvml::SmoothingFieldsOf(library_->driver_branch());
    const Result<std::optional<double>> smooths = ReadField(smoothing.enabled);
    if (!smooths) return tl::unexpected(smooths.error());
    if (smooths->value_or(0) != 0) {
      const Result<std::optional<double>> floor = ReadField(smoothing.floor);
      if (!floor) return tl::unexpected(floor.error());
      conditions.power_floor_watts = *floor;
    }
    return conditions;
  }

  SetRight set_right() const { return set_right_; }

 private:
  NvmlGpu(std::shared_ptr<const NvmlLibrary> library, nvml::Device device, unsigned index)
      : library_(std::move(library)), device_(device) {
    info_.index = static_cast<int>(index);
  }

  const NvmlFunctions& nvml() const { return library_->functions(); }
  // Calls a function of NVML, which may be null, if this process may.
  template <typename Function, typename... Arguments>
  nvml::Return Raw(Function function, Arguments... arguments) const {
    if (!library_->InOwnProcess()) return kForked;
    return function != nullptr ? function(device_, arguments...) : nvml::kNotSupported;
  }

  // The same with a sentence: "`doing` of GPU 3 failed: ...".
  template <typename Function, typename... Arguments>
  Result<void> Call(std::string_view doing, Function function, Arguments... arguments) const {
    const nvml::Return code = Raw(function, arguments...);
    if (code == nvml::kSuccess) return {};
    return tl::unexpected(Explain(code, doing));
  }

  // The same for a function that a card may not support: returns false then. Fails only if the GPU
  // is lost.
  template <typename Function, typename... Arguments>
  Result<bool> Ask(Function function, Arguments... arguments) const {
    const nvml::Return code = Raw(function, arguments...);
    if (IsGone(code)) return tl::unexpected(Explain(code, "reading limits"));
    return code == nvml::kSuccess;
  }

  Error Explain(nvml::Return code, std::string_view doing) const {
    if (code == kForked) {
      return {ErrorCode::kIo,
              fmt::format("{} of GPU {} failed: this process was forked from the one "
                          "that opened the GPUs; open them again in the child",
                          doing, info_.index)};
    }
    return NvmlError(code, fmt::format("{} of GPU {}", doing, info_.index));
  }

  Result<void> ReadInfo() {
    std::array<char, nvml::kNameSize> text = {};
    constexpr auto kSize = static_cast<unsigned>(text.size() - 1);
    Result<void> read = Call("reading the name", nvml().device_get_name, text.data(), kSize);
    if (!read) return read;
    info_.name = text.data();
    text.fill('\0');
    read = Call("reading the uuid", nvml().device_get_uuid, text.data(), kSize);
    if (!read) return read;
    info_.uuid = text.data();
    return ReadClocks();
  }

  // The graphics clocks at the highest memory clock, which is the one in use under
  // load. Locks apply to graphics and SM clocks alike.
  Result<void> ReadClocks() {
    const std::vector<unsigned> memory = ListOf([&](unsigned* count, unsigned* list) {
      return Raw(nvml().get_memory_clocks, count, list);
    });
    std::vector<unsigned> clocks;
    if (!memory.empty()) {
      const unsigned highest = *std::max_element(memory.begin(), memory.end());
      clocks = ListOf([&](unsigned* count, unsigned* list) {
        return Raw(nvml().get_graphics_clocks, highest, count, list);
      });
    }
    if (clocks.empty()) {
      // The card does not tell (a MIG slice, a virtual GPU): the one that is sure.
      unsigned mhz = 0;
      Result<void> read =
          Call("reading the highest clock", nvml().get_max_clock, nvml::kClockSm, &mhz);
      if (!read) return read;
      clocks.push_back(mhz);
    }
    info_.clocks_mhz.assign(clocks.begin(), clocks.end());
    std::sort(info_.clocks_mhz.begin(), info_.clocks_mhz.end());
    info_.clocks_mhz.erase(std::unique(info_.clocks_mhz.begin(), info_.clocks_mhz.end()),
                           info_.clocks_mhz.end());
    return {};
  }

  Result<std::optional<double>> ReadField(unsigned field) const {
    if (field == 0) return std::optional<double>();
    nvml::FieldValue value;
    value.field = field;
    const Result<bool> read = Ask(nvml().get_field_values, 1, &value);
    if (!read) return tl::unexpected(read.error());
    if (!*read || value.result != nvml::kSuccess) return std::optional<double>();
    return std::optional<double>(NumberOf(value));
  }

  Result<std::optional<double>> ReadMilliwatts(nvml::Return (*function)(nvml::Device,
                                                                        unsigned*)) const {
    unsigned milliwatts = 0;
    const Result<bool> read = Ask(function, &milliwatts);
    if (!read) return tl::unexpected(read.error());
    if (!*read) return std::optional<double>();
    return std::optional<double>(milliwatts * kMilli);
  }

  Result<void> ReadPowerProfiles(GpuConditions* conditions) const {
    nvml::CurrentPowerProfiles profiles;
    profiles.version = nvml::VersionOf<nvml::CurrentPowerProfiles>(1);
    const Result<bool> read = Ask(nvml().get_power_profiles, &profiles);
    if (!read) return tl::unexpected(read.error());
    for (unsigned profile = 0; *read && profile < nvml::kPowerProfiles; ++profile) {
      if (profiles.enforced.Has(profile)) {
        conditions->power_profiles.push_back(PowerProfileName(profile));
      }
    }
    return {};
  }

  void LearnRight(const Result<void>& result) {
    if (result) {
      set_right_ = SetRight::kGranted;
    } else if (result.error().code == ErrorCode::kDenied) {
      set_right_ = SetRight::kDenied;
    }
  }

  std::shared_ptr<const NvmlLibrary> library_;
  nvml::Device device_;
  GpuInfo info_;
  Mutex set_mutex_;  // One change of this GPU's clock at a time.
  std::atomic<SetRight> set_right_ = SetRight::kUntried;
  std::atomic<bool> has_instant_power_ = true;  // Until the card says otherwise.
};

// The NVIDIA kernel module's condition for setting clocks.
bool HasCapabilitySysAdmin() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data = {};
  if (syscall(SYS_capget, &header, data.data()) != 0) return false;
  return (data[CAP_TO_INDEX(CAP_SYS_ADMIN)].effective & CAP_TO_MASK(CAP_SYS_ADMIN)) != 0;
}

class NvmlDriver : public Driver {
 public:
  explicit NvmlDriver(std::shared_ptr<const NvmlLibrary> library) : library_(std::move(library)) {}

  Result<void> OpenGpus() {
    unsigned count = 0;
    const nvml::Return code = library_->functions().device_get_count(&count);
    if (code != nvml::kSuccess) return tl::unexpected(NvmlError(code, "counting the GPUs"));
    for (unsigned index = 0; index < count; ++index) {
      Result<std::unique_ptr<NvmlGpu>> gpu = NvmlGpu::Open(library_, index);
      if (!gpu) {
        // One lost GPU does not take the others along.
        faults_.push_back(gpu.error().message);
        continue;
      }
      nvml_gpus_.push_back(gpu->get());
      gpus_.push_back(*std::move(gpu));
    }
    if (!gpus_.empty()) return {};
    if (!faults_.empty()) return MakeError(ErrorCode::kIo, faults_.front());
    return MakeError(ErrorCode::kIo,
                     "the NVIDIA driver is here but shows no GPU; a container sees those that it "
                     "is started with ('--gpus all'), a batch job those that it was given");
  }

  std::string_view kind() const override { return "nvml"; }
  const std::vector<std::unique_ptr<Gpu>>& gpus() const override { return gpus_; }
  std::vector<std::string> faults() const override { return faults_; }

  // The result of a call counts more than the capability, which a container may have without the
  // driver honouring it.
  Result<bool> MaySetClocks() override {
    bool granted = false;
    for (const NvmlGpu* gpu : nvml_gpus_) {
      if (gpu->set_right() == SetRight::kDenied) return false;
      granted = granted || gpu->set_right() == SetRight::kGranted;
    }
    return granted || HasCapabilitySysAdmin();
  }

 private:
  std::shared_ptr<const NvmlLibrary> library_;
  std::vector<std::unique_ptr<Gpu>> gpus_;
  std::vector<const NvmlGpu*> nvml_gpus_;  // The same.
  std::vector<std::string> faults_;
};

}  // namespace

Result<std::unique_ptr<Driver>> OpenNvmlDriver(const std::string& path) {
  Result<std::shared_ptr<const NvmlLibrary>> library = NvmlLibrary::Load(path);
  if (!library) return tl::unexpected(library.error());
  auto driver = std::make_unique<NvmlDriver>(*std::move(library));
  const Result<void> opened = driver->OpenGpus();
  if (!opened) return tl::unexpected(opened.error());
  return driver;
}

namespace {

struct ErrorName {
  nvml::Return code;
  const char* name;
  const char* why;  // What it means, and what to do.
};

constexpr const char* kNoPermissionSentence =
    "this process lacks the right; GPU clocks are set by root or with CAP_SYS_ADMIN. Run 'perseus "
    "agent' as root on the node and use --driver agent:SOCKET, or give this process the capability";

constexpr ErrorName kErrorNames[] = {
    {nvml::kUninitialized, "uninitialized", "the driver was unloaded; start the program again"},
    {nvml::kInvalidArgument, "invalid_argument", "the driver refuses the value"},
    {nvml::kNotSupported, "not_supported", "this GPU does not offer it"},
    {nvml::kNoPermission, "no_permission", kNoPermissionSentence},
    {nvml::kNotFound, "not_found", "the driver does not know it"},
    {nvml::kDriverNotLoaded, "driver_not_loaded",
     "the NVIDIA driver is not loaded; run 'nvidia-smi' and see 'dmesg'"},
    {nvml::kTimeout, "timeout", "the driver did not answer in time; try again"},
    {nvml::kGpuIsLost, "gpu_is_lost",
     "the GPU fell off the bus; see 'dmesg' for an Xid error, then reset it or restart the node"},
    {nvml::kResetRequired, "reset_required", "the GPU must be reset ('nvidia-smi --gpu-reset')"},
    {nvml::kOperatingSystem, "operating_system", "the operating system refused; see 'dmesg'"},
    {nvml::kVersionMismatch, "version_mismatch",
     "library and kernel module of the NVIDIA driver differ in version, as after an update; "
     "restart the node"},
    {nvml::kInUse, "in_use", "another program has the GPU to itself"},
    {nvml::kNoData, "no_data", "the driver has no value now"},
    {nvml::kNotReady, "not_ready", "the driver is not ready; try again"},
    {nvml::kUnknown, "unknown", "the driver gives no reason; see 'dmesg'"},
};

constexpr std::array<const char*, 26> kProfileNames = {
    "MAX_P",
    "MAX_Q",
    "COMPUTE",
    "MEMORY_BOUND",
    "NETWORK",
    "BALANCED",
    "LLM_INFERENCE",
    "LLM_TRAINING",
    "RBM",
    "DCPCIE",
    "HMMA_SPARSE",
    "HMMA_DENSE",
    "SYNC_BALANCED",
    "HPC",
    "MIG",
    "MAX_Q_1",
    "NETWORK_BOUND",
    "HIGH_THROUGHPUT_INFERENCE",
    "MEDIUM_THROUGHPUT_INFERENCE",
    "LOW_LATENCY_INFERENCE",
    "TRAINING",
    "INFERENCE",
    "MAX_Q_2",
    "MAX_Q_3",
    "LOW_PRIORITY_BACKGROUND",
    "MAX",
};

// nvmlClocksEventReason*: the bits keep their meaning over all versions of nvml.h.
struct ThrottleName {
  std::uint64_t bit;
  const char* name;
};
constexpr ThrottleName kThrottleNames[] = {
    {0x4, "power cap"},
    {0x8, "hardware slowdown"},
    {0x10, "sync boost"},
    {0x20, "software thermal slowdown"},
    {0x40, "hardware thermal slowdown"},
    {0x80, "hardware power brake"},
};

// Idle, application or locked clocks (0x2), display clocks: somebody's wish.
constexpr std::uint64_t kHarmless = 0x1 | 0x2 | 0x100;

}  // namespace

std::optional<nvml::Return> NvmlErrorByName(std::string_view name) {
  for (const ErrorName& each : kErrorNames) {
    if (name == each.name) return each.code;
  }
  return std::nullopt;
}

std::vector<std::string> NvmlErrorNames() {
  std::vector<std::string> names;
  for (const ErrorName& each : kErrorNames) names.emplace_back(each.name);
  return names;
}

Error NvmlError(nvml::Return code, std::string_view doing) {
  const ErrorCode kind = code == nvml::kNoPermission ? ErrorCode::kDenied : ErrorCode::kIo;
  for (const ErrorName& each : kErrorNames) {
    if (code == each.code) return {kind, fmt::format("{} failed: {}", doing, each.why)};
  }
  return {kind, fmt::format("{} failed: the NVIDIA driver returned error {}", doing, code)};
}

std::string PowerProfileName(unsigned profile) {
  if (profile < kProfileNames.size()) return kProfileNames[profile];
  return fmt::format("profile {}", profile);
}

std::optional<unsigned> PowerProfileByName(std::string_view name) {
  for (std::size_t i = 0; i < kProfileNames.size(); ++i) {
    if (name == kProfileNames[i]) return static_cast<unsigned>(i);
  }
  return std::nullopt;
}

std::vector<std::string> ThrottleNames(std::uint64_t throttle_reasons) {
  std::vector<std::string> names;
  std::uint64_t unknown = throttle_reasons & ~kHarmless;
  for (const auto& [bit, name] : kThrottleNames) {
    if ((throttle_reasons & bit) != 0) names.emplace_back(name);
    unknown &= ~bit;
  }
  if (unknown != 0) names.emplace_back("a reason that this version does not know");
  return names;
}

}  // namespace perseus::device
