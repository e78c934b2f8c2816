// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weir::manager {

/// For text and attributes of SVG and HTML, on one line: what markup or a terminal would obey is
/// shown instead.
std::string escaped(std::string_view text);

/// With an ellipsis in its middle if it has more letters: ends of hosts' names tell them apart. Not
/// escaped.
std::string shortened(std::string_view text, std::size_t most_letters);

} // namespace weir::manager
