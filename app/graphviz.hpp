// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "plan/drawing.hpp"

#include <string>

namespace weir::app {

/// Has Graphviz lay `drawing` out and write it to `file` as SVG. Throws std::runtime_error when it
/// is not installed or fails.
void write_svg(const plan::Drawing& drawing, const std::string& file);

} // namespace weir::app
