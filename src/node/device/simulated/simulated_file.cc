// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/simulated/simulated_file.h"

#include <fmt/format.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>  // NOLINT(modernize-deprecated-headers): clock_nanosleep.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cmath>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include "common/file.h"
#include "common/file_descriptor.h"
#include "common/monotonic_clock.h"
#include "common/nearest_name.h"

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

std::uint64_t Fnv1a(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return hash;
}

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

}  // namespace perseus::device
