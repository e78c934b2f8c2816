// SPDX-License-Identifier: BSD-3-Clause

/// What ranks say of their operators when they meet, before any hello: no number for two codes.

#include "host/rendezvous/agreement.hpp"
#include "program/operator.hpp"
#include "program/parse.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weir::host::agreement_test {
namespace {

using Loaded = std::shared_ptr<const program::Operator>;

const std::string kText = "weir-operator 1\nname sum\nread i32 v\nlanes i32\nidentity v 0\n"
                          "start acc = v\nfold acc = acc + v\nfinish out = acc\n";

/// One text by codes that give it other results.
Loaded with_digest_of(std::uint8_t byte) {
  program::Digest digest;
  digest.fill(byte);
  return std::make_shared<const program::Operator>(
      program::FoldProgram(program::parse(kText), op::CpuLevel::baseline), digest);
}

std::string digits(const std::string& pair) {
  std::string text;
  while (text.size() < 64) {
    text += pair;
  }
  return text;
}

/// What each rank says to the others' introductions; empty: it agrees.
std::vector<std::string> answers(const std::vector<std::vector<Loaded>>& operators) {
  std::vector<GroupOptions> ranks(operators.size());
  std::vector<Blob> blobs;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    ranks[rank].rank = static_cast<std::uint16_t>(rank);
    ranks[rank].world = static_cast<std::uint16_t>(ranks.size());
    ranks[rank].operators = operators[rank];
    blobs.push_back(introduce(ranks[rank], {}));
  }
  std::vector<std::string> said;
  for (const GroupOptions& options : ranks) {
    try {
      EXPECT_EQ(agree(options, blobs).size(), ranks.size());
      said.emplace_back();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::mismatch);
      said.emplace_back(error.what());
    }
  }
  return said;
}

std::string naming(const std::string& number, const std::string& theirs, const std::string& ours) {
  return "operator " + number + " (sum): " + theirs + ", " + ours +
         "; allowed: one text, and libraries that give it the same results, on all ranks";
}

TEST(Agreement, TakesOperatorsThatAllHave) {
  const std::vector<Loaded> both{with_digest_of(0x11), with_digest_of(0x22)};
  EXPECT_EQ(answers({both, both, both}), std::vector<std::string>(3));
}

TEST(Agreement, NamesWhoHasOtherResults) {
  const Loaded first = with_digest_of(0x11);
  const std::vector<Loaded> most{first, with_digest_of(0x22)};
  const std::vector<Loaded> odd{first, with_digest_of(0x23)};
  const std::string rank_2 = "rank 2 has digest " + digits("23");
  EXPECT_EQ(answers({most, most, odd}),
            (std::vector{
                naming("1", rank_2, "rank 0 has " + digits("22")),
                naming("1", rank_2, "rank 1 has " + digits("22")),
                naming("1", "rank 0 has digest " + digits("22"), "rank 2 has " + digits("23"))}));
}

TEST(Agreement, NamesWhoHasAnotherText) {
  std::string text = kText;
  text.replace(text.find("acc + v"), 7, "v + acc");
  const Loaded one = program::Operator::load(kText);
  const Loaded other = program::Operator::load(text);
  const std::string a = program::to_string(one->digest());
  const std::string b = program::to_string(other->digest());
  ASSERT_NE(a, b);
  EXPECT_EQ(answers({{one}, {other}}),
            (std::vector{naming("0", "rank 1 has digest " + b, "rank 0 has " + a),
                         naming("0", "rank 0 has digest " + a, "rank 1 has " + b)}));
}

TEST(Agreement, IsOnNumbersToo) {
  const Loaded one = with_digest_of(0x11);
  const Loaded other = with_digest_of(0x22);
  EXPECT_EQ(answers({{one, other}, {other, one}})[0],
            naming("0", "rank 1 has digest " + digits("22"), "rank 0 has " + digits("11")));
  EXPECT_EQ(
      answers({{one, other}, {one}}),
      (std::vector<std::string>{"rendezvous: rank 1 says number of operators 1; rank 0 says 2",
                                "rendezvous: rank 0 says number of operators 2; rank 1 says 1"}));
}

} // namespace
} // namespace weir::host::agreement_test
