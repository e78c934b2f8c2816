// SPDX-License-Identifier: BSD-3-Clause

/// Numbers, lists and strings as people and JSON write them.

#include "text/json.hpp"
#include "text/list.hpp"
#include "text/number.hpp"
#include "text/printable.hpp"
#include "text/quantity.hpp"
#include "text/quoted_words.hpp"
#include "text/token_text.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace weir::text::text_test {
namespace {

TEST(QuotedWords, KeepTheirBlanks) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(quoted_words(""), Words{});
  EXPECT_EQ(quoted_words("  show\tring  7 "), (Words{"show", "ring", "7"}));
  EXPECT_EQ(quoted_words("load 'a b.weir' \"it's\""), (Words{"load", "a b.weir", "it's"}));
  EXPECT_EQ(quoted_words("/tmp/'a  b'/c,\"d e\""), (Words{"/tmp/a  b/c,d e"}));
  EXPECT_EQ(quoted_words("''"), Words{""});
  for (const char* open : {"'", "load 'a b", "\"it's"}) {
    EXPECT_THROW(quoted_words(open), std::invalid_argument) << open;
  }
}

TEST(Quantities, RatesAreExact) {
  EXPECT_EQ(parse_rate("100Gbit/s"), 100'000'000'000U);
  EXPECT_EQ(parse_rate("12.5 GB/s"), 100'000'000'000U);
  EXPECT_EQ(parse_rate("0.001kbit/s"), 1U);
  EXPECT_EQ(parse_rate("0Gbit/s"), 0U);
  for (const char* text :
       {"", "100", "Gbit/s", "100G", "1.5bit/s", "1.Gbit/s", ".5Gbit/s", "-1Gbit/s", "1e3bit/s",
        "1..5Gbit/s", "99999999Tbit/s", "18446744073709551616bit/s", "0x10bit/s", "1.5.5Gbit/s"}) {
    EXPECT_EQ(parse_rate(text), std::nullopt) << text;
  }
}

TEST(Quantities, LatenciesAndSizes) {
  EXPECT_EQ(parse_latency("0ns"), 0U);
  EXPECT_EQ(parse_latency("1.5us"), 1500U);
  EXPECT_EQ(parse_latency("60s"), 60'000'000'000U);
  EXPECT_EQ(parse_latency("61s"), std::nullopt);
  EXPECT_EQ(parse_latency("0.5ns"), std::nullopt);
  EXPECT_EQ(parse_size("32K"), 32768U);
  EXPECT_EQ(parse_size("1GiB"), 1U << 30);
  EXPECT_EQ(parse_size("17"), 17U);
  EXPECT_EQ(parse_size("1.5K"), 1536U);
  EXPECT_EQ(parse_size("1.7B"), std::nullopt);
}

TEST(Quantities, AreWrittenInTheLargestUnitThatFits) {
  EXPECT_EQ(rate_text(100'000'000'000), "100Gbit/s");
  EXPECT_EQ(rate_text(12'500'000'000), "12500Mbit/s");
  EXPECT_EQ(rate_text(1), "1bit/s");
  EXPECT_EQ(size_text(32768), "32KiB");
  EXPECT_EQ(size_text(1000), "1000B");
}

TEST(Lists, AreCutAtCommas) {
  using Words = std::vector<std::string_view>;
  EXPECT_EQ(words_of("sum"), Words{"sum"});
  EXPECT_EQ(words_of("sum,min,and"), (Words{"sum", "min", "and"}));
  EXPECT_EQ(words_of(""), Words{""});
  EXPECT_EQ(words_of("a,,b,"), (Words{"a", "", "b", ""}));
}

TEST(Numbers, AreAllOfTheText) {
  EXPECT_EQ(parsed<std::uint8_t>("255"), 255);
  for (const char* text : {"256", "-1", "", " 1", "1 ", "0x1"}) {
    EXPECT_EQ(parsed<std::uint8_t>(text), std::nullopt) << text;
  }
}

// RFC 8259 section 7: quotation mark, reverse solidus and U+0000 to U+001F must be escaped.
TEST(JsonStrings, EscapeWhatTheyMust) {
  EXPECT_EQ(json_string("plain é"), "\"plain é\"");
  EXPECT_EQ(json_string("say \"no\" \\ \n"), "\"say \\\"no\\\" \\\\ \\u000a\"");
  EXPECT_EQ(json_string(std::string_view("\0", 1)), "\"\\u0000\"");
}

/// A parser must not stop at what a stranger has written.
TEST(JsonStrings, AreUtf8WhateverComes) {
  EXPECT_EQ(json_string("\xff\xc3"), "\"\\ufffd\\ufffd\"");
  EXPECT_EQ(json_string("\x7f\xc2\x9b"), "\"\\u007f\\u009b\"");
}

TEST(Printable, LeavesTextAsItIs) {
  for (const std::string_view text :
       {"", "plain", "back\\slash", "é", "\u20ac", "\U0001f600", "\ufffd", "a b"}) {
    EXPECT_TRUE(is_printable(text)) << text;
    EXPECT_EQ(printable(text), text);
  }
}

struct Hidden {
  std::string_view text;
  std::string_view shown;
};

// RFC 3629 sections 3 and 4 have the sequences that are none.
constexpr std::array kHiddenTexts{
    Hidden{"\x1b]0;title\x07", "\\x1b]0;title\\x07"}, // a terminal's title
    Hidden{"\x1b[2J", "\\x1b[2J"},                    // clears the screen
    Hidden{"a\nb\rc\td", "a\\x0ab\\x0dc\\x09d"},
    Hidden{std::string_view("\0", 1), "\\x00"},
    Hidden{"\x7f", "\\x7f"},
    Hidden{"\xc2\x9b"
           "31m",
           "\\xc2\\x9b31m"},                            // CSI of C1
    Hidden{"\xe2\x80\xae", "\\xe2\\x80\\xae"},          // right-to-left override
    Hidden{"\xe2\x80\xa8", "\\xe2\\x80\\xa8"},          // line separator
    Hidden{"\xc3", "\\xc3"},                            // half a sequence
    Hidden{"\xc3(", "\\xc3("},                          // a sequence that breaks off
    Hidden{"\x80", "\\x80"},                            // a tail without a head
    Hidden{"\xc0\xaf", "\\xc0\\xaf"},                   // '/', too long
    Hidden{"\xe0\x80\xaf", "\\xe0\\x80\\xaf"},          // the same
    Hidden{"\xed\xa0\x80", "\\xed\\xa0\\x80"},          // a surrogate
    Hidden{"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"}, // U+110000
    Hidden{"\xff", "\\xff"},
};

TEST(Printable, EscapesWhatATerminalWouldObey) {
  for (const Hidden& hidden : kHiddenTexts) {
    EXPECT_FALSE(is_printable(hidden.text)) << hidden.shown;
    EXPECT_EQ(printable(hidden.text), hidden.shown);
    EXPECT_TRUE(is_printable(printable(hidden.text)));
  }
}

TEST(Printable, KeepsLinesWhereAnAnswerHasSome) {
  EXPECT_EQ(printable_lines("one\n\ntwo\x1b\n"), "one\n\ntwo\\x1b\n");
  EXPECT_EQ(printable_lines("no end"), "no end");
}

TEST(TokenText, IsALineThatIsReadBack) {
  const std::string text = token_text({17, std::string("\x00\x0a\xff", 3)});
  EXPECT_EQ(text, "17 000aff\n");
  const auto token = parsed_token(text);
  ASSERT_TRUE(token);
  EXPECT_EQ(token->allocation, 17U);
  EXPECT_EQ(token->secret, std::string("\x00\x0a\xff", 3));
  EXPECT_TRUE(parsed_token("17 00"));
}

TEST(TokenText, IsRefusedWhereItIsNone) {
  for (const char* const text : {"", "\n", "17", "17 ", "0 00", " 00", "17 0", "17 0g", "17  00",
                                 "-1 00", "17 00\n\n", "17 00 ", "17 +1"}) {
    EXPECT_FALSE(parsed_token(text)) << text;
  }
}

} // namespace
} // namespace weir::text::text_test
