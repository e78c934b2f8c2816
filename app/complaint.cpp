// SPDX-License-Identifier: BSD-3-Clause
#include "complaint.hpp"

#include "text/printable.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace weir::app {

void complain(std::string_view program, std::string_view what) {
  std::fputs(fmt::format("{}: {}\n", program, text::printable(what)).c_str(), stderr);
}

} // namespace weir::app
