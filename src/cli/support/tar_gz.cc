// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/support/tar_gz.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace perseus::cli {
namespace {

constexpr std::size_t kBlock = 512;
constexpr std::size_t kMostName = 100;
constexpr std::uint64_t kMostBytes = (std::uint64_t{1} << 33) - 1;  // Eleven octal digits.

// A field of a header.
struct Field {
  std::size_t at;
  std::size_t size;
};
constexpr Field kName = {0, 100};
constexpr Field kMode = {100, 8};
constexpr Field kOwner = {108, 8};
constexpr Field kGroup = {116, 8};
constexpr Field kBytes = {124, 12};
constexpr Field kTime = {136, 12};
constexpr Field kChecksum = {148, 8};
constexpr Field kType = {156, 1};
constexpr Field kMagic = {257, 8};

void Put(Field field, std::string_view text, std::string* header) {
  std::copy(text.begin(), text.end(), header->begin() + static_cast<std::ptrdiff_t>(field.at));
}

// Octal digits and a NUL.
void PutNumber(Field field, std::uint64_t number, std::string* header) {
  Put(field, fmt::format("{:0{}o}", number, field.size - 1), header);
}

std::string HeaderOf(const OutputFile& file, std::int64_t at_seconds) {
  std::string header(kBlock, '\0');
  Put(kName, file.name, &header);
  PutNumber(kMode, 0600, &header);
  PutNumber(kOwner, 0, &header);
  PutNumber(kGroup, 0, &header);
  PutNumber(kBytes, file.bytes.size(), &header);
  PutNumber(kTime, static_cast<std::uint64_t>(std::max<std::int64_t>(at_seconds, 0)), &header);
  Put(kType, "0", &header);
  Put(kMagic, std::string_view("ustar\00000", kMagic.size), &header);
  // The sum counts its own field as blanks.
  Put(kChecksum, "        ", &header);
  std::uint64_t sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  Put(kChecksum, std::string_view(fmt::format("{:06o}", sum) + '\0').substr(0, 7), &header);
  return header;
}

Result<std::string> Gzip(const std::string& bytes) {
  constexpr int kGzip = 15 + 16;  // The largest window, and gzip's header.
  z_stream stream = {};
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    return MakeError(ErrorCode::kInternal, "zlib cannot pack");
  }
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  // zlib reads, and takes no const.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int done = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (done != Z_STREAM_END) return MakeError(ErrorCode::kInternal, "zlib cannot pack");
  return packed;
}

}  // namespace

Result<std::string> PackTarGz(const std::vector<OutputFile>& files, std::int64_t at_seconds) {
  std::string tar;
  for (const OutputFile& file : files) {
    if (file.name.size() > kMostName) {
      return InvalidInput(
          fmt::format("{}: the name is longer than {} bytes", file.name, kMostName));
    }
    if (file.bytes.size() > kMostBytes) {
      return InvalidInput(fmt::format("{}: larger than 8 GiB", file.name));
    }
    tar += HeaderOf(file, at_seconds) + file.bytes;
    tar.append((kBlock - tar.size() % kBlock) % kBlock, '\0');
  }
  tar.append(2 * kBlock, '\0');
  if (tar.size() > (std::size_t{1} << 31)) {
    return InvalidInput("the files together are larger than 2 GiB");
  }
  return Gzip(tar);
}

}  // namespace perseus::cli
