/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* Calls by the values of variables, for `--by`: the keys of a group, and its row. */

static __always_inline u64 key_word(u8 kind, struct thread *t, struct filter *f)
{
	switch (kind) {
	case KEY_CALL:
		return t->call;
	case KEY_FD:
		return f->facts.word[FACT_FD];
	case KEY_ERRNO:
		return f->facts.word[FACT_ERRNO];
	case KEY_BYTES:
		return slot_of(f->facts.word[FACT_BYTES]);
	case KEY_DURATION:
		return slot_of(f->facts.word[FACT_DURATION]);
	case KEY_THREAD:
		return f->facts.word[FACT_THREAD];
	case KEY_PID:
		return f->facts.word[FACT_PID];
	case KEY_IMAGE:
		return t->call_thread ? t->call_image : t->image;
	case KEY_PATH:
		return f->path_text;
	case KEY_THREADNAME:
		return f->threadname_text;
	case KEY_CGROUP:
		return f->cgroup_text;
	case KEY_PEER:
		return f->peer_text;
	case KEY_TITLE:
		return f->title_text;
	}
	return 0;
}

__noinline int raise(struct by_row *row, u64 wall_ns)
{
	u64 known;

	if (!row)
		return 0;
	for (int i = 0; i < 8; i++) {
		known = row->max_ns;
		if (wall_ns <= known ||
		    __sync_val_compare_and_swap(&row->max_ns, known, wall_ns) == known)
			break;
	}
	return 0;
}

/* The row of a group; NULL: there is no room. */
static __always_inline struct by_row *group_row(const struct by_key *key)
{
	struct by_row none = {}, *row = bpf_map_lookup_elem(&by_rows, key);

	if (row)
		return row;
	bpf_map_update_elem(&by_rows, key, &none, BPF_NOEXIST);
	row = bpf_map_lookup_elem(&by_rows, key);
	if (!row)
		__sync_fetch_and_add(&where_counters.lost_rows, 1);
	return row;
}

/* Adds one with these facts. */
static __always_inline void add_to_group(struct by_row *row, const struct facts *facts)
{
	u64 wall_ns = facts->word[FACT_DURATION];

	__sync_fetch_and_add(&row->calls, 1);
	if (facts->word[FACT_ERRNO])
		__sync_fetch_and_add(&row->errors, 1);
	__sync_fetch_and_add(&row->bytes, facts->word[FACT_BYTES]);
	__sync_fetch_and_add(&row->wall_ns, wall_ns);
	raise(row, wall_ns);
}

/* For calls of iotomy's own, which measure what grouping costs and are in no group. */
struct by_row spare SEC(".data.spare");

static __always_inline struct by_row *spare_row(const struct by_key *key)
{
	bpf_map_lookup_elem(&by_rows, key);
	return &spare;
}

/* A call that is counted. */
__noinline int group_call(struct thread *t)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct filter *f = task_row(&filters, task);
	struct by_key key = {};
	struct by_row *row;

	if (!t || !f)
		return 0;
	for (int i = 0; i < MOST_KEYS; i++)
		key.word[i] = key_word(where.by[i], t, f);
	row = t->calibrates ? spare_row(&key) : group_row(&key);
	if (row)
		add_to_group(row, &f->facts);
	return 0;
}

static __always_inline void group(struct thread *t)
{
	if (where.groups && t->image && is_open(t->call) && wants(t, t->call))
		group_call(t);
}
