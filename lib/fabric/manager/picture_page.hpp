// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "manager/standby.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <weir/v1/fabric.pb.h>

namespace weir::manager {

/// A page with the picture, what is not well, and the jobs. It needs page_script() and
/// page_style() beside it, and nothing from elsewhere. It is well-formed XML too.
std::string page_of(const v1::FabricPicture& picture, std::chrono::system_clock::time_point drawn);

/// The same of a manager that stands by: it says so, and who leads.
std::string page_of(const Standby& standby, std::chrono::system_clock::time_point drawn);

/// Puts the page's next picture in place every two seconds, and says when none comes.
std::string_view page_script();

std::string page_style();

/// Lines of an HTTP header that forbid a browser all that the page does not need, so that a name
/// that got past the escaping does nothing either.
std::string_view page_header();

} // namespace weir::manager
