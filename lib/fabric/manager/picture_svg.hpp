// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <weir/v1/fabric.pb.h>

namespace weir::manager {

enum class SvgUse : std::uint8_t {
  file, // it stands alone: with its style, and its list of jobs
  page, // of a page that has both
};

/// The fabric as a picture: hosts below their switches, links as thick as they are loaded, each
/// job's trees in a colour and with a stroke of its own and its number, what is drained, down, not
/// reached or waited for in words.
std::string svg_of(const v1::FabricPicture& picture, SvgUse use);

/// Of the picture's classes, for light and dark.
std::string_view picture_style();

/// By class, of a job's lines and words: "job-3".
std::string class_of(std::uint64_t job);

} // namespace weir::manager
