/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* Firings: which clauses they run, and the programs at the probes. */

static __always_inline int run_clause(struct machine *m, struct thread_row *row, u32 clause)
{
	int outcome;

	m->clause = clause;
	m->step = 0;
	m->fault = 0;
	m->address = 0;
	m->records = 0;
	m->exits = 0;
	m->token_length = 0;
	m->event_length = sizeof(struct event_head);
	outcome = clauses(m, row);
	if (outcome == OUTCOME_FAULT || outcome == OUTCOME_FULL)
		return outcome;
	if (m->records)
		send(m);
	if (m->exits)
		exited = 1;
	return OUTCOME_DONE;
}

/* Runs the clauses of the ERROR probe, whose firing has facts of its own. */
__noinline int d_error(struct machine *m, struct thread_row *row, u64 clause, u64 step)
{
	u64 probe, names, set_at = knobs.error_probe;
	u32 number, at = set_at;
	struct probe *error;
	struct set *set;
	u64 fault, address;

	if (!m)
		return 0;
	fault = m->fault;
	address = m->address;
	error = bpf_map_lookup_elem(&probes, &at);
	if (!error)
		return 0;
	at = error->set;
	set = bpf_map_lookup_elem(&sets, &at);
	if (!set || !set->count)
		return 0;
	probe = m->probe;
	number = m->probe_number;
	names = m->names;
	_Pragma("unroll") for (int i = 0; i < 6; i++) m->saved[i] = m->facts[i];
	_Pragma("unroll") for (int i = 0; i < 8; i++) m->saved[8 + i] =
		m->facts[FACT_PROBEPROV + i];
	m->saved[16] = *(u64 *)&m->present[FACT_PROBEPROV];
	*(u64 *)&m->present[FACT_PROBEPROV] = 0;
	m->saved[17] = m->facts[FACT_ID];
	m->saved[18] = m->present[FACT_ID];
	m->present[FACT_ID] = 0;
	m->facts[0] = 0;
	m->facts[1] = clause + 1;
	m->facts[2] = step;
	m->facts[3] = step;
	m->facts[4] = fault;
	m->facts[5] = address;
	m->probe = (u64)error;
	m->names = error->names;
	m->probe_number = knobs.error_probe;
	for (u32 i = 0; i < MOST_IN_SET; i++) {
		if (i >= knobs.most_in_set || i >= set->count)
			break;
		if (run_clause(m, row, set->clauses[i]) == OUTCOME_FAULT)
			count(&counters.errors_in_error);
		if (exited)
			break;
	}
	m->probe = probe;
	m->names = names;
	m->probe_number = number;
	_Pragma("unroll") for (int i = 0; i < 6; i++) m->facts[i] = m->saved[i];
	_Pragma("unroll") for (int i = 0; i < 8; i++) m->facts[FACT_PROBEPROV + i] =
		m->saved[8 + i];
	*(u64 *)&m->present[FACT_PROBEPROV] = m->saved[16];
	m->facts[FACT_ID] = m->saved[17];
	m->present[FACT_ID] = m->saved[18];
	return 0;
}

/* Runs the clauses of the firing's probe. */
static __always_inline int run_clauses(struct machine *m, struct thread_row *row, u64 set_number)
{
	u32 at = set_number;
	bool was_over = exited;
	struct set *set;

	if (!m)
		return 0;
	set = bpf_map_lookup_elem(&sets, &at);
	if (!set)
		return 0;
	for (u32 i = 0; i < MOST_IN_SET; i++) {
		if (i >= knobs.most_in_set || i >= set->count)
			break;
		if (run_clause(m, row, set->clauses[i]) == OUTCOME_FAULT) {
			send_fault(m);
			d_error(m, row, m->clause, m->step);
		}
		/* An exit() lets no further clause of the firing run. */
		if (exited && !was_over)
			break;
	}
	return 0;
}

/* The same, looked at once by the verifier. */
__noinline int d_fire(struct machine *m, struct thread_row *row, u64 set_number)
{
	return run_clauses(m, row, set_number);
}

static __always_inline u32 *level_of_cpu(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&levels, &zero);
}

/* The machine for a firing, which ends with `leave`. */
static __always_inline struct machine *enter(u32 *level)
{
	u32 zero = 0, at = *level;
	struct machine *m;

	if (at >= MOST_LEVELS) {
		count(&counters.nested);
		return NULL;
	}
	*level = at + 1;
	m = bpf_map_lookup_elem(&machines, &at);
	if (!m)
		return NULL;
	m->place = bpf_get_smp_processor_id() << 2 | at;
	m->literals = (u64)bpf_map_lookup_elem(&literals, &zero);
	m->arena_length = 0;
	_Pragma("unroll") for (int i = 0; i < FACTS / 8; i++)((u64 *)m->present)[i] = 0;
	/* What the verifier knows not to run is removed, but for the look at each knob. */
	_Pragma("unroll") for (u32 i = 0; i < LOCALS; i++)
	{
		if (i >= knobs.locals)
			break;
		m->locals[i] = 0;
	}
	return m;
}

static __always_inline void leave(u32 *level)
{
	*level -= 1;
}

static __always_inline void note_thread(struct machine *m, struct task_struct *task)
{
	if (sight.level) {
		m->facts[FACT_PID] = tgid_of(task);
		m->facts[FACT_TID] = pid_of(task);
	} else {
		m->facts[FACT_PID] = task->tgid;
		m->facts[FACT_TID] = task->pid;
	}
	m->task = (u64)task;
	m->thread = (u64)task;
	/* Read again, it is a number. */
	barrier();
	/* Threads outside iotomy's namespace have the number 0 all. */
	m->facts[FACT_THREAD_START] = task->start_time ^ m->task;
	m->facts[FACT_ERRNO] = 0;
	m->is_other = 0;
}

/* The probe of a call: 0 is none. */
static __always_inline u32 probe_of_call(struct task_struct *task, long id, u32 shift)
{
	u32 number = id, *both;

	/* Of none, as after a signal's handler; what is beyond the table shares its last place. */
	if (number == (u32)-1)
		return 0;
	if (number >= CALL_NUMBERS / 2)
		number = CALL_NUMBERS / 2 - 1;
	if (task->thread_info.status & TS_COMPAT)
		number += CALL_NUMBERS / 2;
	both = bpf_map_lookup_elem(&calls, &number);
	return both ? *both >> shift & 0xffff : 0;
}

static __always_inline void note_probe(struct machine *m, u32 number, struct probe *probe)
{
	m->probe = (u64)probe;
	m->names = probe->names;
	m->probe_number = number;
}

static __always_inline void fire_at(struct machine *m, struct thread_row *row, u32 number,
				    struct probe *probe)
{
	note_probe(m, number, probe);
	d_fire(m, row, probe->set);
}

#define EXECVE 59

/* Whether a call is of the process that waits to run the command: it is the command from that
 * execve on. */
static __always_inline bool is_held(struct task_struct *task, long id)
{
	if (!held || tgid_of(task) != held)
		return false;
	if (id != EXECVE)
		return true;
	held = 0;
	return false;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(sys_enter, struct pt_regs *regs, long id)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 number, *level;
	struct probe *probe;
	struct machine *m;

	if (exited || task->tgid == own_tgid || is_held(task, id))
		return 0;
	number = probe_of_call(task, id, 0);
	if (!number || !is_meant(task))
		return 0;
	probe = bpf_map_lookup_elem(&probes, &number);
	level = level_of_cpu();
	if (!probe || !level)
		return 0;
	m = enter(level);
	if (!m)
		return 0;
	note_thread(m, task);
	if (task->thread_info.status & TS_COMPAT) {
		m->facts[0] = (u32)regs->bx;
		m->facts[1] = (u32)regs->cx;
		m->facts[2] = (u32)regs->dx;
		m->facts[3] = (u32)regs->si;
		m->facts[4] = (u32)regs->di;
		m->facts[5] = (u32)regs->bp;
	} else {
		m->facts[0] = regs->di;
		m->facts[1] = regs->si;
		m->facts[2] = regs->dx;
		m->facts[3] = regs->r10;
		m->facts[4] = regs->r8;
		m->facts[5] = regs->r9;
	}
	_Pragma("unroll") for (int i = 6; i < 10; i++) m->facts[i] = 0;
	note_probe(m, number, probe);
	run_clauses(m, thread_row(m, task), probe->set);
	leave(level);
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(sys_exit, struct pt_regs *regs, long ret)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 number, *level;
	struct probe *probe;
	struct machine *m;

	if (exited || task->tgid == own_tgid || is_held(task, regs->orig_ax))
		return 0;
	number = probe_of_call(task, (int)regs->orig_ax, 16);
	if (!number || !is_meant(task))
		return 0;
	probe = bpf_map_lookup_elem(&probes, &number);
	level = level_of_cpu();
	if (!probe || !level)
		return 0;
	m = enter(level);
	if (!m)
		return 0;
	note_thread(m, task);
	/* Both have what the call returned: -1 with an error. */
	if (ret < 0 && ret >= -MAX_ERRNO) {
		m->facts[FACT_ERRNO] = -ret;
		ret = -1;
	}
	m->facts[0] = ret;
	m->facts[1] = ret;
	_Pragma("unroll") for (int i = 2; i < 10; i++) m->facts[i] = 0;
	note_probe(m, number, probe);
	run_clauses(m, thread_row(m, task), probe->set);
	leave(level);
	return 0;
}

struct fire_args {
	u32 probe;
	u32 is_given; /* facts are those of `given` */
};

/* Finds out who iotomy is; run by itself, before any probe fires. */
SEC("syscall")
int find_self(void *nothing)
{
	find_sight();
	own_tgid = bpf_get_current_task_btf()->tgid;
	return 0;
}

/* Fires a probe for user space. */
SEC("syscall")
int fire_probe(struct fire_args *args)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 number = args->probe, zero = 0, *level = level_of_cpu();
	struct probe *probe = bpf_map_lookup_elem(&probes, &number);
	struct given *facts;
	struct machine *m;

	if (!probe || !level)
		return 1;
	m = enter(level);
	if (!m)
		return 2;
	note_thread(m, task);
	_Pragma("unroll") for (int i = 0; i < 10; i++) m->facts[i] = 0;
	facts = args->is_given ? bpf_map_lookup_elem(&given, &zero) : NULL;
	if (facts) {
		__builtin_memcpy(m->present, facts->present, sizeof(m->present));
		__builtin_memcpy(m->facts, facts->facts, sizeof(m->facts));
		_Pragma("unroll") for (u32 i = 0; i < GIVEN_TEXTS; i++)
			m->facts[FACT_EXECNAME + 2 * i] = (u64)&facts->texts[i];
		m->thread = facts->facts[FACT_TID];
		__builtin_memcpy(m->execname, facts->texts[0], sizeof(m->execname));
	}
	fire_at(m, thread_row(m, task), number, probe);
	leave(level);
	return 0;
}
