// SPDX-License-Identifier: BSD-3-Clause

/// Any text is a rate, a time, a size, names or a token, or is rejected. An accepted value is
/// within its bounds, and printing and parsing it gives the same value.

#include "plan/host_list.hpp"
#include "plan/node_names.hpp"
#include "text/quantity.hpp"
#include "text/token_text.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

using namespace weir::plan;
using namespace weir::text;

constexpr std::uint64_t kMinute = 60'000'000'000;
constexpr std::size_t kMostNames = 4096;

void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto rate = parse_rate(text)) {
    require(*rate <= std::uint64_t{1} << 53 && parse_rate(rate_text(*rate)) == rate);
  }
  if (const auto latency = parse_latency(text)) {
    require(*latency <= kMinute);
  }
  if (const auto bytes = parse_size(text)) {
    require(*bytes <= std::uint64_t{1} << 46 && parse_size(size_text(*bytes)) == bytes);
  }
  for (const auto& names : {expand_names(text, kMostNames), names_in(text, kMostNames)}) {
    require(!names || (!names->empty() && names->size() <= kMostNames));
  }
  if (const auto token = parsed_token(text)) {
    require(parsed_token(token_text(*token))->secret == token->secret);
  }
  return 0;
}
