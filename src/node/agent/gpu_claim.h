// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_AGENT_GPU_CLAIM_H_
#define PERSEUS_AGENT_GPU_CLAIM_H_

#include <string>
#include <utility>

#include "common/file_descriptor.h"
#include "perseus/result.h"

namespace perseus::agent {

// All agents of a machine use this folder, even if their sockets and journals differ.
inline constexpr const char* kDefaultGpuLocks = "/run/perseus/gpus";

// A GPU that this agent owns. The claim is a file named after the GPU, which the kernel keeps
// locked until the process ends. The file also records whether the clock may be locked, in case the
// journal is lost. It is removed with the claim unless the clock must still be given back. Not
// thread-safe.
class GpuClaim {
 public:
  // kConflict: another agent owns the GPU. kIo: the file cannot be made, or is not an agent's.
  static Result<GpuClaim> Take(const std::string& folder, const std::string& uuid);

  GpuClaim(GpuClaim&& other) noexcept = default;
  GpuClaim& operator=(GpuClaim&&) = delete;
  ~GpuClaim();

  // Whether the clock may be locked, by this agent or by an earlier one that was killed.
  bool marked() const { return marked_; }
  // Best effort: the journal is the authority.
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
