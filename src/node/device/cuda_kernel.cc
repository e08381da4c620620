// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/cuda_kernel.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "common/nearest_name.h"
#include "device/cuda_abi.h"
#include "device/library_symbols.h"

namespace perseus::device {

// Volta or newer, as the energy counter is; the driver compiles it for the GPU at hand.
// The store keeps the compiler from leaving the loop out; it practically never happens.
const std::string_view kSpinPtx = R"(.version 6.0
.target sm_70
.address_size 64
.visible .global .align 4 .u32 perseus_sink;
.visible .entry perseus_spin(.param .u32 steps)
{
  .reg .pred %more, %hit;
  .reg .u32 %steps, %x, %i;
  .reg .u64 %sink;
  ld.param.u32 %steps, [steps];
  mov.u32 %x, %clock;
  mov.u32 %i, 0;
again:
  mad.lo.u32 %x, %x, 1664525, 1013904223;
  mad.lo.u32 %x, %x, %x, 12345;
  mad.lo.u32 %x, %x, 1664525, 1013904223;
  mad.lo.u32 %x, %x, %x, 54321;
  add.u32 %i, %i, 1;
  setp.lt.u32 %more, %i, %steps;
  @%more bra again;
  setp.eq.u32 %hit, %x, 3735928559;
  mov.u64 %sink, perseus_sink;
  @%hit st.global.u32 [%sink], %x;
  ret;
}
)";

namespace {

// By the names of cuda.h without "cu"; the newest version whose arguments are these.
struct CudaFunctions {
  explicit CudaFunctions(void* library) : symbols{library} {}

  LibrarySymbols symbols;
  cuda::Status (*init)(unsigned) = symbols.Find({"cuInit"});
  cuda::Status (*get_error_string)(cuda::Status, const char**) = symbols.Find({"cuGetErrorString"});
  cuda::Status (*device_get_count)(int*) = symbols.Find({"cuDeviceGetCount"});
  cuda::Status (*device_get)(cuda::Device*, int) = symbols.Find({"cuDeviceGet"});
  cuda::Status (*device_get_uuid)(cuda::Uuid*, cuda::Device) = symbols.Find({"cuDeviceGetUuid_v2",
                                                                             "cuDeviceGetUuid"});
  cuda::Status (*retain_context)(cuda::Context**,
                                 cuda::Device) = symbols.Find({"cuDevicePrimaryCtxRetain"});
  cuda::Status (*release_context)(cuda::Device) = symbols.Find({"cuDevicePrimaryCtxRelease_v2"});
  cuda::Status (*push_context)(cuda::Context*) = symbols.Find({"cuCtxPushCurrent_v2"});
  cuda::Status (*pop_context)(cuda::Context**) = symbols.Find({"cuCtxPopCurrent_v2"});
  cuda::Status (*load_module)(cuda::Module**, const void*) = symbols.Find({"cuModuleLoadData"});
  cuda::Status (*unload_module)(cuda::Module*) = symbols.Find({"cuModuleUnload"});
  cuda::Status (*get_function)(cuda::Function**, cuda::Module*,
                               const char*) = symbols.Find({"cuModuleGetFunction"});
  cuda::Status (*create_event)(cuda::Event**, unsigned) = symbols.Find({"cuEventCreate"});
  cuda::Status (*destroy_event)(cuda::Event*) = symbols.Find({"cuEventDestroy_v2"});
  cuda::Status (*record_event)(cuda::Event*, cuda::Stream*) = symbols.Find({"cuEventRecord"});
  cuda::Status (*wait_event)(cuda::Event*) = symbols.Find({"cuEventSynchronize"});
  cuda::Status (*elapsed_ms)(float*, cuda::Event*,
                             cuda::Event*) = symbols.Find({"cuEventElapsedTime"});
  cuda::Status (*launch)(cuda::Function*, unsigned, unsigned, unsigned, unsigned, unsigned,
                         unsigned, unsigned, cuda::Stream*, void**,
                         void**) = symbols.Find({"cuLaunchKernel"});

  bool HasWhatIsNeeded() const {
    return init != nullptr && device_get_count != nullptr && device_get != nullptr &&
           device_get_uuid != nullptr && retain_context != nullptr && release_context != nullptr &&
           push_context != nullptr && pop_context != nullptr && load_module != nullptr &&
           unload_module != nullptr && get_function != nullptr && create_event != nullptr &&
           destroy_event != nullptr && record_event != nullptr && wait_event != nullptr &&
           elapsed_ms != nullptr && launch != nullptr;
  }
};

std::string UuidText(const cuda::Uuid& uuid) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < uuid.bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", uuid.bytes[i]);
  }
  return text;
}

class CudaKernel final : public TimedKernel {
 public:
  explicit CudaKernel(void* library) : cuda_(library) {}

  // The library stays loaded: CUDA has threads of its own in it.
  ~CudaKernel() override {
    if (context_ == nullptr || cuda_.push_context(context_) != cuda::kSuccess) return;
    if (begin_ != nullptr) cuda_.destroy_event(begin_);
    if (end_ != nullptr) cuda_.destroy_event(end_);
    if (module_ != nullptr) cuda_.unload_module(module_);
    cuda::Context* popped = nullptr;
    cuda_.pop_context(&popped);
    cuda_.release_context(device_);
  }

  Result<void> Open(const std::string& name, const std::string& uuid) {
    if (!cuda_.HasWhatIsNeeded()) {
      return MakeError(ErrorCode::kIo,
                       fmt::format("{} is no CUDA driver: it lacks functions", Shown(name)));
    }
    if (auto good = Check(cuda_.init(0), "starting CUDA"); !good) return good;
    if (auto good = FindDevice(uuid); !good) return good;
    cuda::Context* context = nullptr;
    if (auto good = Check(cuda_.retain_context(&context, device_), "taking the GPU"); !good) {
      return good;
    }
    context_ = context;
    return InContext([&]() -> Result<void> {
      if (auto good = Check(cuda_.load_module(&module_, kSpinPtx.data()), "loading the kernel");
          !good) {
        return good;
      }
      if (auto good =
              Check(cuda_.get_function(&function_, module_, "perseus_spin"), "finding the kernel");
          !good) {
        return good;
      }
      if (auto good = Check(cuda_.create_event(&begin_, 0), "making an event"); !good) return good;
      return Check(cuda_.create_event(&end_, 0), "making an event");
    });
  }

  Result<void> Fit(double seconds) override {
    constexpr int kTries = 6;
    steps_ = kFirstSteps;
    for (int i = 0; i < kTries; ++i) {
      const Result<KernelTime> run = Run();
      if (!run) return tl::unexpected(run.error());
      if (run->seconds <= 0) {
        return MakeError(ErrorCode::kIo, "CUDA says that a kernel took no time");
      }
      const double steps = std::clamp(steps_ * seconds / run->seconds, 1.0, kMostSteps);
      steps_ = static_cast<std::uint32_t>(steps);
    }
    return {};
  }

  Result<KernelTime> Run() override {
    float milliseconds = 0;
    const auto begin = std::chrono::steady_clock::now();
    const Result<void> ran = InContext([&]() -> Result<void> {
      std::array<void*, 1> arguments = {&steps_};
      if (auto good = Check(cuda_.record_event(begin_, nullptr), "timing a kernel"); !good) {
        return good;
      }
      if (auto good = Check(
              cuda_.launch(function_, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments.data(), nullptr),
              "running a kernel");
          !good) {
        return good;
      }
      if (auto good = Check(cuda_.record_event(end_, nullptr), "timing a kernel"); !good) {
        return good;
      }
      if (auto good = Check(cuda_.wait_event(end_), "running a kernel"); !good) return good;
      return Check(cuda_.elapsed_ms(&milliseconds, begin_, end_), "timing a kernel");
    });
    if (!ran) return tl::unexpected(ran.error());
    return KernelTime{.seconds = 1e-3 * static_cast<double>(milliseconds), .begin = begin};
  }

 private:
  static constexpr std::uint32_t kFirstSteps = 10'000;
  static constexpr double kMostSteps = 1e9;

  Result<void> Check(cuda::Status status, std::string_view doing) const {
    if (status == cuda::kSuccess) return {};
    const char* text = nullptr;
    if (cuda_.get_error_string != nullptr) cuda_.get_error_string(status, &text);
    return MakeError(ErrorCode::kIo, fmt::format("{}: CUDA says {} ({})", doing,
                                                 text == nullptr ? "no more" : text, status));
  }

  Result<void> FindDevice(const std::string& uuid) {
    int count = 0;
    if (auto good = Check(cuda_.device_get_count(&count), "counting GPUs"); !good) return good;
    for (int i = 0; i < count; ++i) {
      cuda::Uuid found{};
      if (cuda_.device_get(&device_, i) == cuda::kSuccess &&
          cuda_.device_get_uuid(&found, device_) == cuda::kSuccess && UuidText(found) == uuid) {
        return {};
      }
    }
    return MakeError(ErrorCode::kIo, fmt::format("CUDA does not show {} (is it hidden by "
                                                 "CUDA_VISIBLE_DEVICES?)",
                                                 Shown(uuid)));
  }

  // The thread's own context is as it was afterwards.
  template <typename Body>
  Result<void> InContext(const Body& body) {
    if (auto good = Check(cuda_.push_context(context_), "taking the GPU"); !good) return good;
    Result<void> done = body();
    cuda::Context* popped = nullptr;
    cuda_.pop_context(&popped);
    return done;
  }

  const CudaFunctions cuda_;
  cuda::Device device_ = 0;
  cuda::Context* context_ = nullptr;
  cuda::Module* module_ = nullptr;
  cuda::Function* function_ = nullptr;
  cuda::Event* begin_ = nullptr;
  cuda::Event* end_ = nullptr;
  std::uint32_t steps_ = kFirstSteps;
};

}  // namespace

Result<std::unique_ptr<TimedKernel>> OpenCudaKernel(const std::string& library,
                                                    const std::string& uuid) {
  const std::string name = library.empty() ? "libcuda.so.1" : library;
  void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();
    return MakeError(ErrorCode::kIo, fmt::format("cannot load CUDA's driver {}: {}", Shown(name),
                                                 why != nullptr ? why : "no reason given"));
  }
  auto kernel = std::make_unique<CudaKernel>(handle);
  if (auto opened = kernel->Open(name, uuid); !opened) return tl::unexpected(opened.error());
  return kernel;
}

}  // namespace perseus::device
