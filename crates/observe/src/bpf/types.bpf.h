/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * The few kernel types the programs read, by name only: the loader finds each
 * field's place in the running kernel's BTF, so a layout that differs between
 * kernels is no matter, and a field that is gone is a clear refusal to load.
 */
#ifndef IOTOMY_TYPES_BPF_H
#define IOTOMY_TYPES_BPF_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_STACK_TRACE = 7,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_EXIST = 2,
	BPF_F_NO_PREALLOC = 1,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
	BPF_F_USER_STACK = 256,
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
	BPF_RB_AVAIL_DATA = 0,
};

struct bpf_spin_lock {
	u32 val;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct pt_regs {
	unsigned long bp, bx, cx, dx, si, di, r8, r9, r10, orig_ax, sp;
};

struct pcpu_hot {
	int preempt_count;
};

struct thread_info {
	u32 status;
};

struct sched_entity {
	u64 sum_exec_runtime;
};

struct qstr {
	u32 len;
	u64 hash_len;
	const unsigned char *name;
};

struct list_head {
	struct list_head *next;
};

struct super_block {
	u32 s_dev;
	unsigned long s_magic;
};

struct address_space {
	unsigned long nrpages;
};

struct inode {
	unsigned short i_mode;
	u32 i_rdev;
	struct super_block *i_sb;
	struct address_space *i_mapping;
	unsigned long i_ino;
	s64 i_size;
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct file_operations;

struct file {
	unsigned int f_flags;
	const struct file_operations *f_op;
	struct inode *f_inode;
	struct path f_path;
};

struct in6_addr {
	union {
		u8 u6_addr8[16];
	} in6_u;
};

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct sock {
	struct sock_common __sk_common;
	u16 sk_protocol;
	struct pid *sk_peer_pid;
};

struct socket {
	short type;
	struct sock *sk;
};

struct socket_alloc {
	struct socket socket;
	struct inode vfs_inode;
};

struct sockaddr_un {
	unsigned short sun_family;
};

struct unix_address {
	int len;
	struct sockaddr_un name[0];
};

struct unix_sock {
	struct unix_address *addr;
	struct sock *peer;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct fs_struct {
	struct path root;
	struct path pwd;
};

struct percpu_counter {
	s64 count;
};

typedef struct {
	void *vdso;
} mm_context_t;

struct vm_area_struct {
	unsigned long vm_start, vm_end;
	unsigned long vm_pgoff;
	struct file *vm_file;
};

struct mm_struct {
	mm_context_t context;
	unsigned long arg_start, arg_end;
	unsigned long hiwater_rss;
	struct file *exe_file;
	struct percpu_counter rss_stat[4];
};

/* Before Linux 6.2 the counters were plain. */
struct mm_rss_stat___before_6_2 {
	struct {
		s64 counter;
	} count[4];
};

struct mm_struct___before_6_2 {
	struct mm_rss_stat___before_6_2 rss_stat;
};

/* Changed with every change of the mappings, where pages are faulted in under a mapping's own lock.
 */
struct seqcount___mappings {
	unsigned int sequence;
};

struct mm_struct___since_6_13 {
	struct seqcount___mappings mm_lock_seq;
};

struct mm_struct___since_6_4 {
	int mm_lock_seq;
};

struct signal_struct {
	unsigned long maxrss;
};

typedef struct {
	unsigned long sig[1];
} sigset_t;

struct sigpending {
	sigset_t signal;
};

struct upid {
	int nr;
};

struct pid {
	unsigned int level;
	struct upid numbers[1]; /* as many as levels, and one */
};

struct task_io_accounting {
	u64 read_bytes;
};

enum bpf_func_id {
	BPF_FUNC_task_pt_regs = 175,
};

struct seccomp {
	int mode;
};

struct cpumask {
	unsigned long bits[1];
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	unsigned int flags;
	int on_cpu;
	int pid;
	int tgid;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	char comm[16];
	struct cpumask cpus_mask;
	struct css_set *cgroups;
	struct mm_struct *mm;
	struct fs_struct *fs;
	struct files_struct *files;
	struct signal_struct *signal;
	struct sigpending pending;
	struct seccomp seccomp;
	struct sched_entity se;
	u64 utime;
	u64 stime;
	u64 start_time;
	unsigned long min_flt;
	unsigned long maj_flt;
	unsigned long nvcsw;
	unsigned long nivcsw;
	struct task_io_accounting ioac;
	void *bpf_storage;
};

struct kernfs_node {
	u64 id;
	const char *name;
};

struct cgroup_root {
	int hierarchy_id;
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
	struct cgroup_root *root;
};

struct css_set {
	struct list_head cgrp_links;
};

/* One of the cgroups of a css_set. */
struct cgrp_cset_link {
	struct cgroup *cgrp;
	struct list_head cgrp_link;
};

struct linux_binprm {
	const char *filename;
};

struct timespec64 {
	s64 tv_sec;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct bpf_map;

struct bpf_iter__bpf_map_elem {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
	void *key;
	void *value;
};

#pragma clang attribute pop

/*
 * What a program on a perf event is given: the registers at the sample, in the order user space has
 * them (ptrace(2)), which no kernel changes.
 */
struct sample_context {
	u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax;
	u64 ip, cs, flags, sp, ss;
};

#endif
