# SPDX-License-Identifier: BSD-3-Clause
#
# Sourced by the tools. What tools/prepare installs belongs to the distribution's programs, so these come first: another
# Python in the user's PATH has none of the packages.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH
