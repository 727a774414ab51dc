// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT
/*
 * The maps that trace.bpf.c shares with what watches beside it. Made first where something does, so
 * that the objects can be loaded side by side.
 */
#include "types.bpf.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "trace.h"
#include "thread.bpf.h"
#include "root.bpf.h"
#include "owners.bpf.h"
#include "ring_issues.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";
