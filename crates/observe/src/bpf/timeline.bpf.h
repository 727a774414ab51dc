/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * What happened inside a read or a write, or a request of io_uring to do so (ring_timeline.bpf.h).
 * Each thread writes into a buffer of its own from a bounded pool; one that proves to be among the
 * slowest changes places with the buffer of the fastest of those that are kept, so nothing is
 * copied and nothing sent.
 */

#define THREADS 512 /* inside a call at a time, whose timeline can be taken down */
#define BUFFERS (THREADS + 2 * MOST_TIMELINES)
#define WORDS	2 /* of a name */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BUFFERS);
	__type(key, u32);
	__type(value, struct timeline);
} pool SEC(".maps");

/* Buffers given back by threads that ended. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, BUFFERS);
	__type(value, u32);
} given_back SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WHATS);
	__type(key, u32);
	__type(value, struct plan);
} plans SEC(".maps");

static __always_inline void return_buffer(u32 buffer)
{
	if (KERNEL_HAS(QUEUES))
		bpf_map_push_elem(&given_back, &buffer, BPF_ANY);
}

static __always_inline struct timeline *buffer_at(u32 buffer)
{
	u32 at = buffer - 1;

	return buffer ? bpf_map_lookup_elem(&pool, &at) : NULL;
}

/* The timeline, if it still is of the call that began then. */
static __always_inline struct timeline *timeline_at(u32 buffer, u64 call_ns)
{
	struct timeline *timeline = buffer_at(buffer);

	return timeline && timeline->open && timeline->start_ns == call_ns ? timeline : NULL;
}

/* A place for an event; NULL: it is only counted. Other CPUs may tell of the same call. */
static __always_inline struct timeline_event *place_for(struct timeline *timeline, u32 what)
{
	u32 nth = __sync_fetch_and_add(&timeline->counts[what & (WHATS - 1)], 1), at;
	bool late = nth >= FIRST_OF_KIND;
	u8 *last = &timeline->late_at[what & (WHATS - 1)][nth & 1];

	if (late && *last) {
		at = *last - 1;
	} else {
		at = __sync_fetch_and_add(&timeline->events_used, 1);
		if (at < EVENTS && late)
			*last = at + 1;
	}
	if (at >= EVENTS) {
		__sync_fetch_and_add(&timeline->unseen, 1);
		return NULL;
	}
	timeline->events[at].late = late;
	return &timeline->events[at];
}

static __always_inline void tell(u32 buffer, u64 call_ns, u32 what, u64 a, u64 b, u64 c, u64 d)
{
	struct timeline *timeline = knobs.timelines && buffer ? timeline_at(buffer, call_ns) : NULL;
	struct timeline_event *event = timeline ? place_for(timeline, what) : NULL;

	if (!event)
		return;
	event->at_ns = bpf_ktime_get_ns();
	event->what = what;
	event->cpu = bpf_get_smp_processor_id();
	event->args[0] = a;
	event->args[1] = b;
	event->args[2] = c;
	event->args[3] = d;
}

/* The buffer that the thread's next timeline goes into; 0: there is none left. */
static __always_inline u32 take_buffer(void)
{
	u32 at = 0;

	if (KERNEL_HAS(QUEUES) && !bpf_map_pop_elem(&given_back, &at))
		return at;
	if (counters.next_buffer >= BUFFERS)
		return 0;
	at = __sync_fetch_and_add(&counters.next_buffer, 1);
	return at < BUFFERS ? at + 1 : 0;
}

/* The timeline of a buffer, without events; NULL, and counted, if there is none. */
static __always_inline struct timeline *empty_timeline(u32 buffer)
{
	struct timeline *timeline = buffer_at(buffer);

	if (!timeline) {
		__sync_fetch_and_add(&counters.lost_timelines, 1);
		return NULL;
	}
	timeline->open = 0;
	if (timeline->events_used || timeline->unseen) {
		__builtin_memset(timeline->counts, 0, sizeof(timeline->counts));
		__builtin_memset(timeline->late_at, 0, sizeof(timeline->late_at));
		timeline->events_used = 0;
		timeline->unseen = 0;
	}
	return timeline;
}

/* As turn_to in files.bpf.h has it: the key its name is found by. */
static __always_inline void note_file(struct timeline *timeline, struct file *file,
				      struct inode *inode)
{
	struct inode_key key = key_of_inode(inode);

	timeline->dentry = name_number(word_at(&file->f_path.dentry));
	timeline->inode = key.inode;
	timeline->device =
		key.device ^ (u32)word_at((void *)file + bpf_core_field_offset(struct file, f_op));
}

static __always_inline void begin_timeline(struct inside *x, struct thread *t, struct file *file,
					   struct inode *inode, u8 kind, u32 fd, u64 argument,
					   u64 offset)
{
	struct timeline *timeline;

	if (!x->buffer)
		x->buffer = take_buffer();
	timeline = empty_timeline(x->buffer);
	if (!timeline)
		return;
	timeline->start_ns = x->call_ns;
	note_file(timeline, file, inode);
	timeline->image = t->image;
	timeline->argument = argument;
	timeline->offset = offset;
	timeline->fd = fd;
	timeline->tid = pid_of(bpf_get_current_task_btf());
	timeline->call = t->call;
	timeline->kind = kind & KIND_BITS;
	timeline->open = 1;
}

/* Keeps the timeline if it is among the slowest of its kind: gives its buffer for that of the
 * fastest of them. */
static __always_inline void keep_timeline(u32 *buffer, struct timeline *timeline)
{
	u64 mine = (timeline->end_ns - timeline->start_ns) >> 4 << 16 | *buffer, least, *slot;
	u64 *kept = counters.kept[(timeline->kind & KIND_BITS) == KIND_READ ? 0 : 1];
	u32 least_at;

	for (int tries = 0; tries < 4; tries++) {
		least = -1ULL;
		least_at = 0;
		for (u32 i = 0; i < MOST_TIMELINES && i < knobs.timelines; i++) {
			if (kept[i] < least) {
				least = kept[i];
				least_at = i;
			}
		}
		if (mine >> 16 <= least >> 16 && least)
			return;
		slot = &kept[least_at & (MOST_TIMELINES - 1)];
		if (__sync_val_compare_and_swap(slot, least, mine) == least) {
			*buffer = least & 0xffff;
			return;
		}
	}
	__sync_fetch_and_add(&counters.lost_timelines, 1);
}

static __always_inline void end_timeline(struct inside *x, struct thread *t, long ret)
{
	struct timeline *timeline = timeline_at(x->buffer, x->call_ns);

	if (!timeline)
		return;
	timeline->open = 0;
	if (t->verdict != COUNTED)
		return; /* left out by --where: the buffer takes the next one */
	/* trace's own program has just closed the call's books. */
	timeline->end_ns = t->last_ns > timeline->start_ns ? t->last_ns : bpf_ktime_get_ns();
	timeline->off_ns = t->off_ns - x->off_ns;
	timeline->blocked_ns = t->blocked_ns - x->blocked_ns;
	timeline->ret = ret;
	__sync_fetch_and_add(&counters.followed, 1);
	keep_timeline(&x->buffer, timeline);
}

static __always_inline void give_back(struct inside *x)
{
	u32 buffer = x->buffer;
	struct timeline *timeline = buffer_at(buffer);

	if (!timeline)
		return;
	x->buffer = 0;
	timeline->open = 0;
	return_buffer(buffer);
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(timeline_thread_exit, struct task_struct *task)
{
	struct inside *x = inside_of(task);
	u32 device;

	if (!x)
		return 0;
	device = x->syncing;
	if (device)
		bpf_map_delete_elem(&syncs, &device);
	x->following = 0;
	give_back(x);
	return 0;
}

#include "ring_timeline.bpf.h"

/* Whether a thread is at what a timeline is told of: at a call, or at a request of io_uring. */
static __always_inline bool in_timeline(struct task_struct *task, struct chapter *at)
{
	struct inside *x = inside_of(task);

	if (!x || !x->following || !x->buffer)
		return in_request_timeline(task, at);
	at->buffer = x->buffer;
	at->began_ns = x->call_ns;
	return true;
}

/* The same of a thread that is switched or woken: a submission thread is not for its requests. */
static __always_inline bool is_of_timeline(struct task_struct *task, struct chapter *at)
{
	return (!(task->flags & PF_IO_WORKER) || worker_of(task)) && in_timeline(task, at);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(timeline_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	struct chapter at;

	if (over)
		return 0;
	if (is_of_timeline(prev, &at))
		tell(at.buffer, at.began_ns, WHAT_OUT, preempt ? 0 : prev_state, preempt, 0, 0);
	if (is_of_timeline(next, &at))
		tell(at.buffer, at.began_ns, WHAT_IN, 0, 0, 0, 0);
	return 0;
}

/*
 * Runs where the waker is; sched_wakeup may run where the woken thread is to be. Whether the waker
 * is the thread that runs there or an interrupt is not told: only of the idle task is it known.
 */
SEC("tp_btf/sched_waking")
int BPF_PROG(timeline_waking, struct task_struct *task)
{
	u64 name[WORDS] = {};
	struct chapter at;

	if (over || !is_of_timeline(task, &at))
		return 0;
	bpf_get_current_comm(name, sizeof(name));
	tell(at.buffer, at.began_ns, WHAT_WOKEN, name[0], name[1], !bpf_get_current_task_btf()->pid,
	     0);
	return 0;
}

/* A value of a tracepoint's record; sizes as in struct plan. */
static __always_inline u64 value_at(void *record, u32 offset, u8 size)
{
	/* Or also what lies behind it in its buffer. */
	u64 word = size ? word_at(record + offset) : 0;

	switch (size) {
	case 1:
		return (u8)word;
	case 2:
		return (u16)word;
	case 4:
		return (u32)word;
	case 8 + 1:
		return (s64)(__s8)word;
	case 8 + 2:
		return (s64)(__s16)word;
	case 8 + 4:
		return (s64)(s32)word;
	default:
		return word;
	}
}

/* Whose timeline it is: the thread's own, or that of a call which waits for what another does. */
static __always_inline bool whose(void *record, struct plan *plan, struct chapter *at)
{
	struct syncer *sync;
	u32 device;

	if (in_timeline(bpf_get_current_task_btf(), at))
		return true;
	if (!plan->device)
		return false;
	device = value_at(record, plan->device, 4);
	sync = bpf_map_lookup_elem(&syncs, &device);
	if (!sync)
		return false;
	at->buffer = sync->buffer;
	at->began_ns = sync->call_ns;
	return true;
}

/* Attached to each tracepoint of the table, whose number there is the cookie. */
SEC("tracepoint")
int timeline_event(void *record)
{
	u32 what = bpf_get_attach_cookie(record);
	struct chapter at = {};
	struct plan *plan;

	if (over)
		return 0;
	plan = bpf_map_lookup_elem(&plans, &what);
	if (!plan || !whose(record, plan, &at))
		return 0;
	tell(at.buffer, at.began_ns, what, value_at(record, plan->offsets[0], plan->sizes[0]),
	     value_at(record, plan->offsets[1], plan->sizes[1]),
	     value_at(record, plan->offsets[2], plan->sizes[2]),
	     value_at(record, plan->offsets[3], plan->sizes[3]));
	return 0;
}
