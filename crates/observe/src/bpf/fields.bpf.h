/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* Fields of the kernel's structs: how they are read, by plain loads where the verifier allows them.
 */
#ifndef IOTOMY_FIELDS_BPF_H
#define IOTOMY_FIELDS_BPF_H

#include <bpf/bpf_core_read.h>

/*
 * Lets the kernel's memory be read by plain loads instead of calls, since Linux 6.2. Where it is
 * not there, the branches with it are removed at load.
 */
extern void *bpf_rdonly_cast(const void *at, u32 type) __ksym __weak;
#define AS(type, at) ((type *)bpf_rdonly_cast((void *)(at), bpf_core_type_id_kernel(type)))

/* A field, by whichever of the two there is. */
#define FIELD(type, at, field) \
	(bpf_rdonly_cast ? AS(type, at)->field : BPF_CORE_READ((type *)(at), field))

/* Eight bytes of anything, as a number. */
static __always_inline u64 word_at(const void *at)
{
	u64 word = 0;

	if (bpf_rdonly_cast)
		return AS(struct timespec64, at)->tv_sec;
	bpf_probe_read_kernel(&word, sizeof(word), at);
	return word;
}

/*
 * A struct whose fields are pointers to load. Where the verifier trusts the struct (a task, say),
 * each such load has it search all types of the kernel by name for what it may trust then, four
 * times over, whenever it comes by: that was half of the time the programs took to load. This one
 * it trusts no more. Verifiers that know no trust have no such search.
 */
#define UNTRUSTED(type, at) (bpf_rdonly_cast ? AS(type, at) : (type *)(at))

/* What a tracepoint is given first, as a number: functions take no pointers of the kernel's. */
static __always_inline u64 first_argument(void *ctx)
{
	u64 at = 0;

	bpf_probe_read_kernel(&at, sizeof(at), ctx);
	return at;
}

#endif
