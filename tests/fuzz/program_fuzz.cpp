// SPDX-License-Identifier: BSD-3-Clause

/// Texts of operators: each is refused with an error, or folds packets of any length within its
/// bound, and touches nothing else.

#include "program/fold_program.hpp"
#include "program/parse.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

namespace {

using namespace weir;

void fold(const program::FoldProgram& fold, std::size_t bytes, const std::vector<std::byte>& data) {
  const std::vector<std::byte> first(data.begin(),
                                     data.begin() + static_cast<std::ptrdiff_t>(bytes));
  const std::vector<std::byte> second(data.end() - static_cast<std::ptrdiff_t>(bytes), data.end());
  const std::array inputs{first.data(), second.data()};
  std::vector<std::byte> out(bytes);
  fold.reduce(out.data(), inputs.data(), inputs.size(), bytes, {});
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), count);
  std::vector<std::byte> data(4200);
  for (std::size_t i = 0; i < data.size(); ++i) {
    data[i] = static_cast<std::byte>(count == 0 ? i : i * 31 + bytes[i % count]);
  }
  try {
    const program::FoldProgram program(program::parse(text), op::best_cpu_level());
    for (const std::size_t length :
         {std::size_t{0}, std::size_t{8}, std::size_t{984}, data.size()}) {
      fold(program, length, data);
    }
  } catch (const program::TextError& error) {
    if (std::string_view(error.what()).find("allowed") == std::string_view::npos) {
      std::abort(); // an error tells what would be right
    }
  }
  return 0;
}
