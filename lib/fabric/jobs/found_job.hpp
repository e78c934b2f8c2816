// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "jobs/site.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>
#include <weir/v1/fabric_records.pb.h>
#include <weir/v1/switch.pb.h>

namespace weir::jobs {

/// A job that runs, as the labels and the parts of its rings at the switches tell it.
class FoundJob {
 public:
  /// `site` outlives it.
  FoundJob(const Site& site, v1::FabricLabel label);

  const v1::FabricLabel& label() const { return label_; }

  /// A part of a ring of its, at a switch that has started as `boot`.
  void add(SwitchIndex at, const std::string& boot, const v1::Ring& ring);

  /// As it was stored when it was placed, but for what is over then: how it was asked for. Of a job
  /// that has not all its parts: one that ends, and why.
  v1::JobRecord record() const;

 private:
  v1::JobRecord as_labelled() const;
  void write_ranks(v1::JobRecord& record) const;
  double usual_rate(const v1::JobRecord& record) const;
  void arrange(v1::RingRecord& record) const;

  const Site* site_;
  v1::FabricLabel label_;
  std::map<std::uint32_t, v1::RingRecord> rings_; // by id, as the job's were numbered
};

} // namespace weir::jobs
