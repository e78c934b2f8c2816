// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "plan/drawing.hpp"

#include <string>

namespace weir::app {

/// Lets Graphviz lay out `drawing` and writes it to `file` as SVG. Throws std::runtime_error when
/// Graphviz is not installed or fails.
void write_svg(const plan::Drawing& drawing, const std::string& file);

} // namespace weir::app
