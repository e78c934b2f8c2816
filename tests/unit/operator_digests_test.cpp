// SPDX-License-Identifier: BSD-3-Clause

/// *Same number, different code*: what the digest of an operator tells apart (docs/protocol.md
/// §12).

#include "op/kernel.hpp"
#include "operator_ways.hpp"
#include "program/digest.hpp"
#include "program/operator.hpp"
#include "program/trial.hpp"
#include "support/sanitized.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <xmmintrin.h>

namespace weir::operator_digests_test {
namespace {

using program::FoldProgram;
using test::Dice;
using test::Packet;

const std::string kFolder = WEIR_SOURCE_ROOT "/config/operators";

/// Each character that is no blank and stands in no comment.
TEST(OperatorDigests, TellTextsApartThatDifferInACharacter) {
  for (const auto& file : std::filesystem::directory_iterator(kFolder)) {
    const std::string text = test::operator_text(file.path().stem().string());
    const std::string own = program::parse(text).text;
    unsigned programs = 0;
    bool is_comment = false;
    for (std::size_t at = 0; at < text.size(); ++at) {
      is_comment = text[at] == '#' || (is_comment && text[at] != '\n');
      if (is_comment || text[at] == ' ' || text[at] == '\n') {
        continue;
      }
      for (const char other : std::string_view("0a+<129bmnsvx-*&").substr(0, test::rounds(16))) {
        std::string odd = text;
        odd[at] = other;
        try {
          const std::string found = program::parse(odd).text;
          programs += other == text[at] ? 0 : 1;
          EXPECT_EQ(program::digest_of(found, {}) == program::digest_of(own, {}), other == text[at])
              << odd;
        } catch (const program::TextError&) {
          EXPECT_NE(other, text[at]);
        }
      }
    }
    EXPECT_GT(programs, test::rounds(50)) << file.path();
  }
}

/// So they tell code apart, too.
TEST(OperatorDigests, TellResultsApartThatDifferInABit) {
  Dice dice(7);
  Packet results = dice.bytes(256);
  std::set<program::Digest> digests{program::digest_of("text", results)};
  for (std::size_t bit = 0; bit < 8 * results.size(); ++bit) {
    const auto flip = static_cast<std::byte>(1U << (bit % 8));
    results[bit / 8] ^= flip;
    EXPECT_TRUE(digests.insert(program::digest_of("text", results)).second) << bit;
    results[bit / 8] ^= flip;
  }
}

/// This thread flushes subnormals, as code by -ffast-math makes it do.
class Flushed {
 public:
  Flushed() : owners_(_mm_getcsr()) { _mm_setcsr(owners_ | 0x8040); }

  ~Flushed() { _mm_setcsr(owners_); }

  Flushed(const Flushed&) = delete;
  Flushed& operator=(const Flushed&) = delete;

 private:
  unsigned owners_;
};

/// Flushing gives other results, so it would show. No text is tried in a thread that does.
TEST(OperatorDigests, AreOfCodeThatKeepsSubnormals) {
  for (const char* name : {"mxfp8-e4m3-sum", "mxfp4-sum", "mxint8-sum"}) {
    const FoldProgram loops(program::parse(test::operator_text(name)), op::best_cpu_level());
    const program::TrialData data(loops.code());
    const auto due = program::results_of(data, loops);
    const program::Digest digest = program::Operator::load(test::operator_text(name))->digest();
    const Flushed flushed;
    EXPECT_TRUE(program::results_of(data, loops) != due) << name;
    EXPECT_EQ(program::Operator::load(test::operator_text(name))->digest(), digest) << name;
  }
}

} // namespace
} // namespace weir::operator_digests_test
