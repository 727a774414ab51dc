// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT
/* The same where processes are selected by their control groups. */
#define CGROUPS
#include "trace.bpf.c"
