/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * Events: what the records of a clause have, laid one behind the other, and sent as a whole when
 * the clause has come to its end. A record is its number in a word, and each value a word, or a
 * string as in a key.
 */

/* The ring has no more room than the program was given for its buffer. */
static __always_inline bool has_room(u64 bytes)
{
	return bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) + bytes + 8 <= knobs.bufsize;
}

/* Begins a record. `most`: the bytes of all records of the clause. 1: there is no room. */
__noinline int d_record(struct machine *m, u64 number, u64 most)
{
	u64 at;

	if (!m)
		return 0;
	if (!m->records && !has_room(most)) {
		count(&counters.dropped_events);
		return 1;
	}
	at = m->event_length;
	if (at > EVENT_MOST - 8)
		return 0;
	barrier_var(at);
	at &= EVENT_MOST - 8;
	*(u64 *)((char *)m->event + at) = number;
	m->event_length = at + 8;
	m->records++;
	return 0;
}

__noinline int d_put(struct machine *m, u64 value)
{
	u64 at;

	if (!m)
		return 0;
	at = m->event_length;
	if (at > EVENT_MOST - 8)
		return 0;
	barrier_var(at);
	at &= EVENT_MOST - 8;
	*(u64 *)((char *)m->event + at) = value;
	m->event_length = at + 8;
	return 0;
}

__noinline int d_put_text(struct machine *m, u64 slot)
{
	u64 at, length, last;

	if (!m || slot >= SLOTS - 1)
		return 0;
	at = m->event_length;
	length = m->slots[slot + 1];
	if (length > STRING_MOST - 1)
		length = STRING_MOST - 1;
	if (at > EVENT_MOST - 8)
		return 0;
	barrier_var(at);
	at &= EVENT_MOST - 8;
	barrier_var(length);
	length &= STRING_MOST - 1;
	last = at + ((length + 1) & ~7ull);
	*(u64 *)((char *)m->event + last) = 0;
	*(u16 *)((char *)m->event + at) = length;
	bpf_probe_read_kernel((char *)m->event + at + 2, length, (void *)m->slots[slot]);
	m->event_length = last + 8;
	return 0;
}

static __always_inline void lay_head(struct machine *m, u32 fault)
{
	struct event_head *head = (void *)m->event;

	head->fault = fault;
	head->clause = m->clause;
	head->probe = m->probe_number;
	head->cpu = m->present[FACT_CPU] ? m->facts[FACT_CPU] : m->place >> 2;
	head->step = m->step;
	head->records = m->records;
	head->address = m->address;
}

/* Sends what the clause that ends has laid. */
static __always_inline void send(struct machine *m)
{
	u64 length = m->event_length;

	lay_head(m, 0);
	if (length > EVENT_MOST + STRING_MOST)
		length = EVENT_MOST + STRING_MOST;
	if (bpf_ringbuf_output(&events, m->event, length, 0))
		count(&counters.dropped_events);
}

static __always_inline void send_fault(struct machine *m)
{
	count(&counters.faults[m->fault & 15]);
	lay_head(m, m->fault);
	if (!has_room(sizeof(struct event_head)) ||
	    bpf_ringbuf_output(&events, m->event, sizeof(struct event_head), 0))
		count(&counters.dropped_events);
}
