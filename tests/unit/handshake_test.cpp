// SPDX-License-Identifier: BSD-3-Clause

/// The bytes of the handshake, and the codes at the end of frames. Expected codes are those of
/// RFC 4231 and of Python's hmac.

#include "host/rendezvous/handshake.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::host::handshake_test {
namespace {

using Message = std::vector<std::uint8_t>;

ByteView bytes_in(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::string hex(ByteView bytes) {
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

Nonce counting_from(std::uint8_t first) {
  Nonce nonce;
  std::iota(nonce.begin(), nonce.end(), first);
  return nonce;
}

const Credentials kJobA{"job-a", "0123456789abcdef"};

Message join_of_job_a() {
  return make_join(kJobA, {3, 8}, counting_from(0));
}

TEST(Codes, AreThoseOfRfc4231) {
  const std::string_view first = "what do ya want ";
  EXPECT_EQ(hex(mac_of(bytes_in("Jefe"), {bytes_in(first), bytes_in("for nothing?")})),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  const Message long_key(131, 0xaa);
  EXPECT_EQ(hex(mac_of(long_key, {bytes_in("Test Using Larger Than Block-Size Key - Hash Key "
                                           "First")})),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Codes, CoverTheFramesNumber) {
  Mac key;
  std::iota(key.begin(), key.end(), std::uint8_t{0});
  FrameSeal seal(key);
  const std::string header("WCTL\x0a\0\0\0\x03", 9);
  EXPECT_EQ(hex(seal.next(bytes_in(header), bytes_in("abc"))),
            "380352adba168c73e5ad6d76b4d56e0f2068ae200f83d55536bd063bf7db6464");
  EXPECT_EQ(hex(seal.next(bytes_in(header), bytes_in("abc"))),
            "1adbc4b04fdf6de78ef1ae3eaf927a3eac05416d750be27b4edaa1c45dd41d4b");
}

TEST(Codes, AreComparedWhole) {
  Mac mac{};
  Message found(mac.begin(), mac.end());
  EXPECT_TRUE(is_same_mac(mac, found));
  found.back() = 1;
  EXPECT_FALSE(is_same_mac(mac, found));
  EXPECT_FALSE(is_same_mac(mac, ByteView(found).first(31)));
  EXPECT_FALSE(is_same_mac(mac, {}));
}

TEST(Handshake, ProofsAreThoseOfAnotherImplementation) {
  const Message join = join_of_job_a();
  EXPECT_EQ(hex(join), "000102030405060708090a0b0c0d0e0f"
                       "00030008"
                       "0520"
                       "6a6f622d61"
                       "884f9118b301de3e6b13c8dced953c8dac20655220b97adc3176f8edd4521b55");
  const Nonce rank_0 = counting_from(100);
  EXPECT_EQ(hex(ByteView(make_challenge(kJobA, join, rank_0)).subspan(16)),
            "bf73d7e45aa2ee840be9c5bb96c742200b0eef1d32eb3bf25b53fcb6725cab0f");
  const SessionKeys keys = session_keys(kJobA, join, rank_0);
  EXPECT_EQ(hex(keys.from_rank_0),
            "5467502f4c425b4f3f45eb8567f7a252c31fd2512fd1a2798bd41ea8b176b0ee");
  EXPECT_EQ(hex(keys.to_rank_0),
            "6023ecaedbf10ae1a6e5543242b8d3620d1e38fe0c5674bca97c7fb8b9c703eb");
}

TEST(Handshake, ReadsNoJoinThatIsNotWhole) {
  const Message sound = join_of_job_a();
  const std::optional<Claim> claim = read_join(sound);
  ASSERT_TRUE(claim);
  EXPECT_EQ(claim->rank, 3);
  EXPECT_EQ(claim->world, 8);
  for (std::size_t bytes = 0; bytes < sound.size(); ++bytes) {
    EXPECT_FALSE(read_join(ByteView(sound).first(bytes))) << bytes << " bytes";
  }

  struct Row {
    const char* text;
    std::function<void(Message&)> spoil;
  };

  constexpr std::size_t job_bytes = 20;
  constexpr std::size_t proof_bytes = 21;
  const std::vector<Row> rows{
      {"a byte too many", [](Message& m) { m.push_back(0); }},
      {"a longer name than there is", [](Message& m) { ++m[job_bytes]; }},
      {"a shorter name than there is", [](Message& m) { --m[job_bytes]; }},
      {"a proof of half the length",
       [](Message& m) { m[proof_bytes] = 16, m.resize(m.size() - 16); }},
      {"a name that is too long",
       [](Message& m) { m[job_bytes] = 65, m.resize(sizeof(JoinBody) + 65 + 32); }},
  };
  for (const Row& row : rows) {
    Message spoiled = sound;
    row.spoil(spoiled);
    EXPECT_FALSE(read_join(spoiled)) << row.text;
  }
}

TEST(Handshake, SaysWhyAJoinIsRefused) {
  struct Row {
    const char* text;
    Credentials caller;
    Credentials rank_0;
    std::optional<Refusal> due;
  };

  const std::string secret = "0123456789abcdef";
  const std::vector<Row> rows{
      {"no name and no secret", {}, {}, std::nullopt},
      {"the same name", {"a", ""}, {"a", ""}, std::nullopt},
      {"the same name and secret", {"a", secret}, {"a", secret}, std::nullopt},
      {"another name", {"a", ""}, {"b", ""}, Refusal::another_job},
      {"the beginning of the name", {"a", ""}, {"ab", ""}, Refusal::another_job},
      {"another name, the same secret", {"a", secret}, {"b", secret}, Refusal::another_job},
      {"another secret", {"a", "0123456789abcdeF"}, {"a", secret}, Refusal::another_secret},
      {"the beginning of the secret", {"a", secret}, {"a", secret + "0"}, Refusal::another_secret},
      {"no secret", {"a", ""}, {"a", secret}, Refusal::secret_missing},
      {"a secret too many", {"a", secret}, {"a", ""}, Refusal::secret_unexpected},
  };
  for (const Row& row : rows) {
    const Message join = make_join(row.caller, {1, 2}, counting_from(0));
    EXPECT_EQ(objection_to(join, row.rank_0), row.due) << row.text;
  }
}

/// A join that came with a right proof and was changed on its way.
TEST(Handshake, AProofCoversEveryByteOfItsJoin) {
  const Message sound = join_of_job_a();
  for (const std::size_t at : {0, 15, 16, 17, 18, 19, 27, 58}) { // nonce, rank, world, proof
    Message changed = sound;
    changed[at] ^= 1;
    ASSERT_TRUE(read_join(changed)) << at;
    EXPECT_EQ(objection_to(changed, kJobA), Refusal::another_secret) << "byte " << at;
  }
}

TEST(Handshake, AChallengeIsProvenForOneJoinAlone) {
  const Message join = join_of_job_a();
  const Nonce nonce = counting_from(100);
  const Message sound = make_challenge(kJobA, join, nonce);
  EXPECT_EQ(read_challenge(sound, join, kJobA), nonce);
  EXPECT_FALSE(read_challenge(sound, make_join(kJobA, {3, 8}, counting_from(1)), kJobA))
      << "an earlier join's";
  EXPECT_FALSE(read_challenge(ByteView(sound).first(sizeof(Nonce)), join, kJobA)) << "no proof";
  EXPECT_FALSE(read_challenge(ByteView(sound).first(sound.size() - 1), join, kJobA)) << "cut";
  Message changed = sound;
  changed[0] ^= 1;
  EXPECT_FALSE(read_challenge(changed, join, kJobA)) << "another nonce";
  EXPECT_FALSE(read_challenge(sound, join, {"job-a", ""})) << "a proof that nobody asked for";
}

TEST(Handshake, ReadsOnlyRefusalsThatThereAre) {
  EXPECT_EQ(read_refusal(Message{2}), Refusal::another_secret);
  for (const Message& body : {Message{}, Message{0}, Message{5}, Message{255}, Message{1, 1}}) {
    EXPECT_FALSE(read_refusal(body)) << hex(body);
  }
}

} // namespace
} // namespace weir::host::handshake_test
