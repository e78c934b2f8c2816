// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>
#include <weir/v1/fabric.pb.h>

namespace weir::manager {

enum class Weight : std::uint8_t {
  trouble, // somebody has to look
  note,    // somebody wants it so, or a job waits
};

struct Finding {
  Weight weight = Weight::note;
  std::string words; // a sentence without its end; not escaped
};

/// What is not as on a quiet day, troubles first. Of a job all numbers are told, and no reason:
/// reasons are texts of people, for operators (`weirctl fabric why`).
std::vector<Finding> findings_of(const v1::FabricPicture& picture);

/// "led by mgr1, term 1.7", or what is so instead; not escaped.
std::string lead_of(const v1::FabricPicture& picture);

/// "down", "drained", or nothing where all is well.
std::string_view state_of(const v1::PictureLink& link);

/// Frames promised over those that rings may hold.
double memory_of(const v1::PictureSwitch& one);

/// "job 3 (train)"; of a long name its ends.
std::string title_of(const v1::Job& job);

/// The first rank that a host of the job has.
std::ptrdiff_t rank_of(const v1::Job& job, const std::string& host);

} // namespace weir::manager
