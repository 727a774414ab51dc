/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * Bios and requests from the block layer's entry to their end, booked in the rows of their causes.
 *
 * A bio is known by its address from block_bio_queue to block_bio_complete, a request from the
 * first time it is met until it is merged or completed. What is met without a known bio is others'.
 */

SEC("tp_btf/block_bio_queue")
int BPF_PROG(block_bio_queue, struct bio *bio)
{
	struct cause cause = {};
	u64 at = (u64)bio;
	struct block_row *row;
	u32 disk;

	if (over)
		return 0;
	if (!find_cause(bio, &cause)) {
		/* What was at this address before is gone. */
		bpf_map_delete_elem(&bios, &at);
		return 0;
	}
	cause.queued_ns = bpf_ktime_get_ns();
	put(&bios, &at, &cause);
	row = row_of(&cause.key);
	if (row) {
		add(&row->bios, 1);
		add(&row->bio_bytes, bio->bi_iter.bi_size);
	}
	if (HAS(bio->bi_opf, __REQ_PREFLUSH) || HAS(bio->bi_opf, __REQ_FUA)) {
		disk = BPF_CORE_READ(bio, bi_bdev, bd_disk, part0, bd_dev);
		put(&flushers, &disk, &cause);
	}
	tell(cause.buffer, cause.call_ns, WHAT_QUEUE, plain_flags(bio->bi_opf),
	     bio->bi_iter.bi_sector, bio->bi_iter.bi_size, cause.key.device);
	return 0;
}

/* The front of a bio goes its own way; what is behind keeps the bio. */
SEC("tp_btf/block_split")
int BPF_PROG(block_split, struct bio *front, unsigned int at_sector)
{
	u64 at = (u64)front, whole = (u64)front->bi_private;
	struct cause *cause, copy;

	if (over)
		return 0;
	cause = bpf_map_lookup_elem(&bios, &whole);
	if (!cause) {
		bpf_map_delete_elem(&bios, &at);
		return 0;
	}
	copy = *cause;
	put(&bios, &at, &copy);
	return 0;
}

static __always_inline int count_merge(struct bio *bio)
{
	u64 at = (u64)bio;
	struct cause *cause = over ? NULL : bpf_map_lookup_elem(&bios, &at);
	struct block_row *row;
	struct row_key key;

	if (!cause)
		return 0;
	key = cause->key;
	row = row_of(&key);
	if (row)
		add(&row->merged_bios, 1);
	tell(cause->buffer, cause->call_ns, WHAT_MERGE, plain_flags(bio->bi_opf),
	     bio->bi_iter.bi_sector, bio->bi_iter.bi_size, key.device);
	return 0;
}

SEC("tp_btf/block_bio_backmerge")
int BPF_PROG(block_bio_backmerge, struct bio *bio)
{
	return count_merge(bio);
}

SEC("tp_btf/block_bio_frontmerge")
int BPF_PROG(block_bio_frontmerge, struct bio *bio)
{
	return count_merge(bio);
}

SEC("tp_btf/block_bio_complete")
int BPF_PROG(block_bio_complete, struct request_queue *q, struct bio *bio)
{
	u64 at = (u64)bio;

	bpf_map_delete_elem(&bios, &at);
	return 0;
}

/* The request under way, made from its first bio when it is met. */
static __always_inline struct flight *flight_of(struct request *rq)
{
	u64 at = (u64)rq, bio = (u64)rq->bio;
	struct flight *flight = bpf_map_lookup_elem(&requests, &at), fresh = {};
	struct cause *cause;
	u32 disk;

	if (flight)
		return flight;
	if (bio) {
		cause = bpf_map_lookup_elem(&bios, &bio);
	} else if ((rq->cmd_flags & OPERATION) == REQ_OP_FLUSH) {
		/* One flush serves all who ask for one meanwhile: it is the last one's. */
		disk = BPF_CORE_READ(rq, q, disk, part0, bd_dev);
		cause = bpf_map_lookup_elem(&flushers, &disk);
	} else {
		return NULL;
	}
	if (!cause)
		return NULL;
	fresh.cause = *cause;
	fresh.cause.key.operation = rq->cmd_flags & OPERATION;
	put(&requests, &at, &fresh);
	return bpf_map_lookup_elem(&requests, &at);
}

static __always_inline void tell_request(struct flight *flight, struct request *rq, u32 what,
					 u64 status)
{
	tell(flight->cause.buffer, flight->cause.call_ns, what, plain_flags(rq->cmd_flags),
	     rq->__sector, rq->__data_len, flight->cause.key.device | status << 32);
}

SEC("tp_btf/block_rq_insert")
int BPF_PROG(block_rq_insert, struct request *rq)
{
	struct flight *flight = over ? NULL : flight_of(rq);

	if (!flight)
		return 0;
	if (!flight->insert_ns)
		flight->insert_ns = bpf_ktime_get_ns();
	tell_request(flight, rq, WHAT_INSERT, 0);
	return 0;
}

static __always_inline void count_flags(struct block_row *row, u32 flags)
{
	add(&row->sync, HAS(flags, __REQ_SYNC));
	add(&row->meta, HAS(flags, __REQ_META));
	add(&row->ahead, HAS(flags, __REQ_RAHEAD));
	add(&row->fua, HAS(flags, __REQ_FUA));
	add(&row->preflush, HAS(flags, __REQ_PREFLUSH));
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(block_rq_issue, struct request *rq)
{
	struct block_row *row;
	struct flight *flight;
	struct row_key key;
	bool again;
	u64 now;

	if (over)
		return 0;
	flight = flight_of(rq);
	if (!flight) {
		add(&counters.others_requests, 1);
		add(&counters.others_bytes, rq->__data_len);
		return 0;
	}
	now = bpf_ktime_get_ns();
	again = flight->issue_ns;
	flight->issue_ns = now;
	tell_request(flight, rq, WHAT_ISSUE, 0);
	if (again)
		return 0;
	key = flight->cause.key;
	row = row_of(&key);
	if (!row)
		return 0;
	add(&row->requests, 1);
	add(&row->bytes, rq->__data_len);
	count_flags(row, rq->cmd_flags);
	add(&row->queue_ns, now - flight->cause.queued_ns);
	count_in(row->sizes, rq->__data_len);
	count_in(row->queue, now - flight->cause.queued_ns);
	if (flight->insert_ns)
		count_in(row->scheduler, now - flight->insert_ns);
	return 0;
}

SEC("tp_btf/block_rq_requeue")
int BPF_PROG(block_rq_requeue, struct request *rq)
{
	u64 at = (u64)rq;
	struct flight *flight = over ? NULL : bpf_map_lookup_elem(&requests, &at);
	struct block_row *row;
	struct row_key key;

	if (!flight)
		return 0;
	key = flight->cause.key;
	row = row_of(&key);
	if (row)
		add(&row->requeued, 1);
	return 0;
}

/* The request became part of another. */
SEC("tp_btf/block_rq_merge")
int BPF_PROG(block_rq_merge, struct request *rq)
{
	struct flight *flight = over ? NULL : flight_of(rq);
	u64 at = (u64)rq;
	struct block_row *row;
	struct row_key key;

	if (!flight)
		return 0;
	key = flight->cause.key;
	row = row_of(&key);
	if (row)
		add(&row->merged_requests, 1);
	tell_request(flight, rq, WHAT_MERGE, 0);
	bpf_map_delete_elem(&requests, &at);
	return 0;
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(block_rq_complete, struct request *rq, int error, unsigned int bytes)
{
	u64 at = (u64)rq, now;
	struct flight *flight = bpf_map_lookup_elem(&requests, &at);
	struct block_row *row;
	struct row_key key;

	if (!flight || (!error && bytes < rq->__data_len))
		return 0; /* a part of it */
	if (!over && flight->issue_ns) {
		now = bpf_ktime_get_ns();
		key = flight->cause.key;
		row = row_of(&key);
		if (row) {
			add(&row->finished, 1);
			add(&row->errors, error != 0);
			add(&row->device_ns, now - flight->issue_ns);
			count_in(row->device, now - flight->issue_ns);
		}
		tell_request(flight, rq, WHAT_COMPLETE, (u8)error);
	}
	bpf_map_delete_elem(&requests, &at);
	return 0;
}
