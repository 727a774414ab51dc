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
	BPF_MAP_TYPE_LRU_HASH = 9,
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
	unsigned long ip;
	unsigned long bp, bx, cx, dx, si, di, r8, r9, r10, orig_ax, sp;
	unsigned long r12, r13, r14, r15;
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

typedef struct {
	int counter;
} atomic_t;

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
	int sk_err;
	u32 sk_ack_backlog;
	u32 sk_max_ack_backlog;
	atomic_t sk_drops;
	struct socket *sk_socket;
	struct pid *sk_peer_pid;
};

struct tcp_sock {
	u32 srtt_us;
	u32 mdev_us;
	u32 total_retrans;
	u32 data_segs_out;
	u64 bytes_acked;
	u64 bytes_received;
	u32 snd_cwnd;
	u32 snd_wnd;
	u32 rcv_wnd;
	u32 chrono_start;
	u32 chrono_stat[3];
	u8 chrono_type : 2;
};

struct socket {
	short type;
	struct file *file;
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
	unsigned long vm_flags;
	struct file *vm_file;
};

struct kernel_siginfo;

struct bpf_perf_event_data {
	struct pt_regs regs;
	u64 sample_period;
	u64 addr;
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
	struct {
		int counter;
	} live; /* threads that have not ended */
	unsigned long maxrss;
};

typedef struct {
	unsigned long sig[1];
} sigset_t;

struct sigpending {
	sigset_t signal;
};

struct pid_namespace;

struct upid {
	int nr;
	struct pid_namespace *ns;
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
	BPF_FUNC_loop = 181,
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
	int exit_code;
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
	void *worker_private;
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

struct io_cqe {
	u64 user_data;
	s32 fd; /* until the request has its file */
};

struct io_wq_work {
	u32 flags;
};

struct io_kiocb {
	struct file *file;
	u8 opcode;
	u32 flags; /* its lower half, where it has two */
	struct io_cqe cqe;
	struct io_ring_ctx *ctx;
	struct io_wq_work work;
};

struct io_accept {
	u32 file_slot;
};

/* The request of a connect, in place of what is common to all. */
struct io_connect {
	void *addr;
	int addr_len;
};

struct filename {
	const char *name;
};

/* The same of operations on a path. */
struct io_open {
	int dfd;
	struct filename *filename;
};

struct io_statx {
	int dfd;
	struct filename *filename;
};

struct io_unlink {
	int dfd;
	struct filename *filename;
};

struct io_mkdir {
	int dfd;
	struct filename *filename;
};

/* Since Linux 6.11. */
struct io_wq_work___atomic {
	struct {
		s32 counter;
	} flags;
};

struct io_kiocb___atomic {
	struct io_wq_work___atomic work;
};

struct io_submit_link {
	struct io_kiocb *head;
};

struct io_submit_state {
	struct io_submit_link link;
};

struct io_ring_ctx {
	struct io_submit_state submit_state;
};

struct io_worker {
	struct io_wq_work *cur_work;
};

/* What a request to read or write has in place of its file. */
struct kiocb {
	s64 ki_pos;
};

struct io_rw {
	struct kiocb kiocb;
	u32 len;
};

/* What a request to receive has in place of its file. */
struct io_sr_msg {
	u32 len;
	u32 msg_flags;
	u16 flags;
};

struct linux_binprm {
	int argc;
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

#pragma clang attribute pop

/* What a raw tracepoint is given. */
struct raw_arguments {
	u64 at[12];
};

/*
 * What a program on a perf event is given: the registers at the sample, in the order user space has
 * them (ptrace(2)), which no kernel changes.
 */
struct sample_context {
	u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax;
	u64 ip, cs, flags, sp, ss;
};

/*
 * The forms that the tracepoints of a submission and a completion have, by kernel; another form,
 * also an older one, is not known here. The loader compares how many arguments there are and their
 * kinds, and of pointers what kind they point to: structs, whichever. So some are not those of
 * the kernel, of which it would look for each among all types.
 */
typedef void (*btf_trace_io_uring_submit_req)(void *, struct io_kiocb *);
typedef void (*btf_trace_io_uring_submit_sqe)(void *, struct io_kiocb *, bool force_nonblock);
typedef void (*btf_trace_io_uring_complete___whole)(void *, struct file *ring, void *request,
						    struct file *completion);
typedef void (*btf_trace_io_uring_complete___parts)(void *, void *ring, void *request, u64 name,
						    int result, u32 flags, u64, u64);

#endif
