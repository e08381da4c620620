// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_AGENT_GPU_CLAIM_H_
#define PERSEUS_AGENT_GPU_CLAIM_H_

#include <string>
#include <utility>

#include "common/file_descriptor.h"
#include "perseus/result.h"

namespace perseus::agent {

// One place for all agents of a machine, whatever their sockets and journals.
inline constexpr const char* kDefaultGpuLocks = "/run/perseus/gpus";

// That a GPU is this agent's: a file named after it, which the kernel locks until the process
// ends. The file also says whether the clock may be locked, should the journal be lost. It goes
// with the claim unless the clock is still to be given back. Movable; one thread at a time.
class GpuClaim {
 public:
  // kConflict: another agent has the GPU. kIo: the file cannot be made, or is not ours.
  static Result<GpuClaim> Take(const std::string& folder, const std::string& uuid);

  GpuClaim(GpuClaim&& other) noexcept = default;
  GpuClaim& operator=(GpuClaim&&) = delete;
  ~GpuClaim();

  // The clock may be locked: by us, or by an agent before us that was killed.
  bool marked() const { return marked_; }
  // Best effort: the journal is what counts.
  void Mark(bool marked);

 private:
  GpuClaim(std::string path, FileDescriptor file)
      : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  FileDescriptor file_;
  bool marked_ = false;
};

}  // namespace perseus::agent

#endif  // PERSEUS_AGENT_GPU_CLAIM_H_
