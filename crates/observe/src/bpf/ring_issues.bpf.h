/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* What each thread that submits to io_uring has issued last: issues.bpf.h. */
#ifndef IOTOMY_RING_ISSUES_BPF_H
#define IOTOMY_RING_ISSUES_BPF_H

struct issue {
	u64 call_ns; /* when the call began that it is in; 0 in a thread of io_uring's */
	u64 operation;
	u64 request; /* 0: none, or none any more */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct issue);
} ring_issues SEC(".maps");

#endif
