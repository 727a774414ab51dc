/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * Samples and sleeps to their rows: at once, or, in a call that `--where` decides about when it
 * returns, set aside until then. Two programs of the same thread never write at a time: a sample
 * that interrupts `decide_call` is of no call any more.
 */

/* By task; what is not decided yet. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct pending);
} undecided SEC(".maps");

static const struct pending none_pending;

static __always_inline void count(u64 *counter)
{
	__sync_fetch_and_add(counter, 1);
}

static __always_inline bool add(struct sample_key *key, u64 times, u64 ns)
{
	struct sample_sum none = {}, *sum;

	sum = bpf_map_lookup_elem(&samples, key);
	if (!sum) {
		bpf_map_update_elem(&samples, key, &none, BPF_NOEXIST);
		sum = bpf_map_lookup_elem(&samples, key);
		if (!sum)
			return false;
	}
	__sync_fetch_and_add(&sum->times, times);
	__sync_fetch_and_add(&sum->ns, ns);
	return true;
}

static __always_inline void lose(u8 kind, u64 times)
{
	__sync_fetch_and_add(kind == BLOCKED ? &sampling.lost_sleeps : &sampling.lost, times);
}

/* Sets a sample or a sleep aside until its call returns. */
static __noinline int set_aside(u64 task, struct sample_key *key, u64 ns)
{
	struct pending_sample *s;
	struct pending *p;

	p = bpf_map_lookup_elem(&undecided, &task);
	if (!p) {
		bpf_map_update_elem(&undecided, &task, &none_pending, BPF_NOEXIST);
		p = bpf_map_lookup_elem(&undecided, &task);
		if (!p) {
			lose(key->kind, 1);
			return 0;
		}
		p->image = key->image;
		p->call = key->call;
	}
	for (u32 i = 0; i < MOST_PENDING; i++) {
		s = &p->sample[i];
		if (i >= p->used) {
			s->kind = key->kind;
			s->stack = key->stack;
			s->user_stack = key->user_stack;
			s->returns_to = key->offset;
			p->used = i + 1;
		} else if (s->kind != key->kind || s->stack != key->stack ||
			   s->user_stack != key->user_stack || s->returns_to != key->offset) {
			continue;
		}
		s->times++;
		s->ns += ns;
		return 0;
	}
	p->lost[key->kind & 1]++;
	return 0;
}

/* Books what was set aside of a thread's call. */
static __noinline int decide(u64 task, u8 in_call)
{
	struct sample_key key = {};
	struct pending_sample *s;
	struct pending *p;

	p = bpf_map_lookup_elem(&undecided, &task);
	if (!p)
		return 0;
	key.image = p->image;
	key.call = p->call;
	key.in_call = in_call;
	for (u32 i = 0; i < MOST_PENDING; i++) {
		if (i >= p->used)
			break;
		s = &p->sample[i];
		key.kind = s->kind;
		key.stack = s->stack;
		key.user_stack = s->user_stack;
		key.offset = s->returns_to;
		if (!add(&key, s->times, s->ns))
			lose(s->kind, s->times);
	}
	lose(ON_CPU, p->lost[ON_CPU]);
	lose(BLOCKED, p->lost[BLOCKED]);
	bpf_map_delete_elem(&undecided, &task);
	return 0;
}

static __always_inline void book_at_once(struct sample_key *key, u64 ns)
{
	if (!add(key, 1, ns))
		lose(key->kind, 1);
}

/* Books it, or sets it aside. */
static __always_inline void book_sample(struct task_struct *task, struct thread *t,
					struct sample_key *key, u64 ns)
{
	if (knobs.undecided && key->in_call == IN_UNDECIDED && !key->place) {
		t->pending = 1;
		set_aside((u64)task, key, ns);
	} else {
		book_at_once(key, ns);
	}
}

/* Attached behind the trace's own program, which has decided. */
SEC("tp_btf/sys_exit")
int BPF_PROG(decide_call, struct pt_regs *regs, long ret)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = thread_of(task);

	if (!t || !t->pending || t->in_call)
		return 0;
	t->pending = 0;
	decide((u64)task, 1 + t->verdict);
	return 0;
}

/* A call that does not return is left out where it is undecided, as in the trace. */
static __always_inline void leave_out(struct task_struct *task, struct thread *t)
{
	if (!knobs.undecided || !t || !t->pending)
		return;
	t->pending = 0;
	decide((u64)task, IN_LEFT_OUT);
}
