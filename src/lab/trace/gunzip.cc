// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "trace/gunzip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <climits>
#include <memory>

namespace perseus::trace {
namespace {

struct InflateEnd {
  void operator()(z_stream* stream) const {
    inflateEnd(stream);
    delete stream;  // NOLINT(cppcoreguidelines-owning-memory): this is its owner.
  }
};
using Inflater = std::unique_ptr<z_stream, InflateEnd>;

Inflater MakeInflater() {
  constexpr int kOnlyGzip = 16 + MAX_WBITS;
  auto stream = std::make_unique<z_stream>();
  *stream = {};
  if (inflateInit2(stream.get(), kOnlyGzip) != Z_OK) return nullptr;
  return Inflater(stream.release());
}

}  // namespace

bool IsGzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

Result<std::string> Gunzip(std::string_view bytes, const std::string& source,
                           std::size_t max_bytes) {
  constexpr std::size_t kBlock = std::size_t{1} << 18;
  const Inflater stream = MakeInflater();
  if (!stream) return MakeError(ErrorCode::kIo, fmt::format("{}: cannot be unpacked", source));
  std::string text;
  std::string block(kBlock, '\0');
  while (true) {
    const std::size_t given = std::min<std::size_t>(bytes.size(), UINT_MAX);
    // zlib reads, and takes no const.
    stream->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));  // NOLINT
    stream->avail_in = static_cast<uInt>(given);
    stream->next_out = reinterpret_cast<Bytef*>(block.data());
    stream->avail_out = static_cast<uInt>(block.size());
    const int status = inflate(stream.get(), Z_NO_FLUSH);
    bytes.remove_prefix(given - stream->avail_in);
    const std::size_t made = block.size() - stream->avail_out;
    if (made > max_bytes - text.size()) {
      return InvalidInput(fmt::format("{}: unpacked it is larger than {} MiB; give fewer steps",
                                      source, max_bytes >> 20));
    }
    text.append(block, 0, made);
    if (status == Z_STREAM_END) {
      if (bytes.empty()) return text;
      if (!IsGzip(bytes) || inflateReset(stream.get()) != Z_OK) {
        return InvalidInput(
            fmt::format("{}: something that is not gzip follows the packed text", source));
      }
      continue;
    }
    if (status == Z_BUF_ERROR || (status == Z_OK && bytes.empty() && made == 0)) {
      return InvalidInput(fmt::format(
          "{}: the packed text ends too early; was the file copied as a whole?", source));
    }
    if (status != Z_OK) {
      return InvalidInput(fmt::format("{}: not a valid gzip file ({}); pack it again", source,
                                      stream->msg != nullptr ? stream->msg : "damaged"));
    }
  }
}

}  // namespace perseus::trace
