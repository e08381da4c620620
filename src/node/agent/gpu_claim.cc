// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "agent/gpu_claim.h"

#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <array>
#include <cctype>
#include <string_view>

#include "agent/safe_place.h"

namespace perseus::agent {
namespace {

constexpr std::string_view kMayBeLocked = "locked";
constexpr std::string_view kIsFree = "free  ";

// "locked 1234\n": whether the clock may be locked, and the process that has the GPU.
std::string TextOf(const FileDescriptor& file) {
  std::array<char, 64> text{};
  const ssize_t size = ::pread(file.get(), text.data(), text.size(), 0);
  return size > 0 ? std::string(text.data(), static_cast<std::size_t>(size)) : "";
}

std::string PathFor(const std::string& folder, std::string uuid) {
  for (char& c : uuid) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-') c = '_';
  }
  return fmt::format("{}/{}.lock", folder, uuid);
}

tl::unexpected<Error> NoClaim(const std::string& path, const std::string& reason) {
  return MakeError(ErrorCode::kIo,
                   fmt::format("{}: {}; agents keep each other from GPUs by this file, so choose a "
                               "folder that all of this machine can write (--gpu-locks DIR)",
                               path, reason));
}

tl::unexpected<Error> HasAnother(const std::string& path, const std::string& uuid,
                                 const FileDescriptor& file) {
  const std::string text = TextOf(file);
  const std::size_t begin = text.find_first_of("0123456789");
  const std::size_t end = text.find_first_not_of("0123456789", begin);
  const std::string process = begin == std::string::npos
                                  ? ""
                                  : fmt::format(" (process {})", text.substr(begin, end - begin));
  return MakeError(ErrorCode::kConflict,
                   fmt::format("another agent{} owns GPU {}, as {} says; stop that agent first, or "
                               "start this one with --observe",
                               process, uuid, path));
}

// Whether the name still leads to the file that is open: who had it before may have removed it.
bool IsStillAt(const std::string& path, const FileDescriptor& file) {
  struct stat at {};
  struct stat open {};
  return ::lstat(path.c_str(), &at) == 0 && ::fstat(file.get(), &open) == 0 &&
         at.st_ino == open.st_ino && at.st_dev == open.st_dev;
}

}  // namespace

Result<GpuClaim> GpuClaim::Take(const std::string& folder, const std::string& uuid) {
  const std::string path = PathFor(folder, uuid);
  if (auto made = MakeFolderFor(path); !made) return NoClaim(path, made.error().message);
  while (true) {
    FileDescriptor file = OpenFile(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (!file.valid()) return NoClaim(path, SystemMessage(errno));
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return HasAnother(path, uuid, file);
      return NoClaim(path, SystemMessage(errno));
    }
    if (!IsStillAt(path, file)) continue;
    if (const std::string fault = WhyNotOurs(file); !fault.empty()) return NoClaim(path, fault);
    GpuClaim claim(path, std::move(file));
    claim.Mark(TextOf(claim.file_).starts_with(kMayBeLocked));
    return claim;
  }
}

GpuClaim::~GpuClaim() {
  if (file_.valid() && !marked_) ::unlink(path_.c_str());
}

void GpuClaim::Mark(bool marked) {
  marked_ = marked;
  const std::string text = fmt::format("{} {:<10}\n", marked ? kMayBeLocked : kIsFree, ::getpid());
  static_cast<void>(::pwrite(file_.get(), text.data(), text.size(), 0));
}

}  // namespace perseus::agent
