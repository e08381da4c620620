// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "trace/gunzip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <string>

#include "support/mentions.h"

namespace perseus::trace {
namespace {

std::string Gzip(const std::string& text) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  std::string in = text;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

TEST(GunzipTest, Unpacks) {
  const std::string text(1'000'000, 'x');
  EXPECT_TRUE(IsGzip(Gzip(text)));
  EXPECT_FALSE(IsGzip(text));
  EXPECT_EQ(Gunzip(Gzip(text), "t", text.size()).value(), text);
  EXPECT_EQ(Gunzip(Gzip(""), "t", 0).value(), "");
  EXPECT_EQ(Gunzip(Gzip("one") + Gzip("two"), "t", 6).value(), "onetwo");
}

TEST(GunzipTest, MakesNoMoreThanAllowed) {
  const auto bomb = Gunzip(Gzip(std::string(3 << 20, 'x')), "t.gz", 2 << 20);
  ASSERT_FALSE(bomb);
  EXPECT_THAT(bomb.error().message, Mentions("t.gz", "2", "MiB"));
}

TEST(GunzipTest, RefusesWhatIsDamaged) {
  const std::string good = Gzip("some text that is long enough to be packed, packed, packed");
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(Gunzip(good.substr(0, length), "t", 1000)) << length;
  }
  std::string changed = good;
  changed[good.size() - 6] ^= 1;  // Of its checksum.
  EXPECT_THAT(Gunzip(changed, "t", 1000).error().message, Mentions("t:", "valid"));
  EXPECT_THAT(Gunzip(good + "more", "t", 1000).error().message, Mentions("follows"));
}

}  // namespace
}  // namespace perseus::trace
