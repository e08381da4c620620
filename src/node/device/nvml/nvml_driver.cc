// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/nvml/nvml_driver.h"

#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "device/nvml/nvml_gpu.h"
#include "device/nvml/nvml_names.h"

namespace perseus::device {
namespace {

// What the NVIDIA kernel module asks of who sets clocks.
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

  // What a call has shown counts more than the capability, which a container may
  // have without the driver honouring it.
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

}  // namespace perseus::device
