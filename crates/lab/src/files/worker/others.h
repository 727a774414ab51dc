/*
 * The other files of the directory: creates, counts, reads back and lists them, and looks up names
 * that do not exist. Included by worker.c; uses its clock, checks and parameters.
 */
#ifndef OTHERS_H
#define OTHERS_H

#define FILLED	    64 /* files of a directory that are not empty; `back` reads them */
#define FILL_LENGTH 9  /* the shortest name that numbers a million files */

static long filled;

/* Makes a name of at least this length that contains a number; the loop uses no such names. */
static void numbered(char *into, const char *tag, long number, size_t least)
{
	char digits[32];
	size_t length = least < name_length ? name_length : least;
	int count = snprintf(digits, sizeof(digits), "%s%07ld", tag, number);

	memset(into, '_', length);
	memcpy(into + 1, digits, (size_t)count);
	into[length < (size_t)count + 1 ? (size_t)count + 1 : length] = 0;
}

static void fill_one(const char *name, bool with_bytes)
{
	long fd = check(do_open(name, O_CREAT | O_WRONLY), "open O_CREAT", name);

	if (with_bytes)
		check(do_write((int)fd, bytes, BYTES), "write", name);
	check(do_close((int)fd), "close", name);
}

/*
 * Creates empty files with one call each instead of three: mknod(2) creates a regular file as
 * open(2) does. Several threads would not help, because the kernel creates the entries of one
 * directory one after another.
 */
static void fill(long count)
{
	bool by_mknod = true;
	char name[LONGEST + 32];
	long at, result;

	for (at = 0; at < count; at++) {
		numbered(name, "f", at, FILL_LENGTH);
		if (at < FILLED || !by_mknod) {
			fill_one(name, at < FILLED);
			continue;
		}
		result = do_mknod(name);
		/* Some file systems do not support mknod, or not for regular files. */
		by_mknod = result != -EPERM && result != -EOPNOTSUPP && result != -ENOSYS;
		if (by_mknod)
			check(result, "mknod", name);
		else
			fill_one(name, false);
	}
}

static void count_filled(void)
{
	char name[LONGEST + 32];
	struct stat attributes;

	for (filled = 0; filled < FILLED; filled++) {
		numbered(name, "f", filled, FILL_LENGTH);
		if (do_stat(name, &attributes) < 0)
			break;
	}
}

static uint64_t back(long times)
{
	static char existing[FILLED][LONGEST + 32];
	uint64_t began;
	long at;

	for (at = 0; at < filled; at++)
		numbered(existing[at], "f", at, FILL_LENGTH);
	began = now();
#ifdef RING
	for (; times > 0; times--) {
		for (at = 0; at < filled;) {
			unsigned place;

			for (place = 0; place < depth && at < filled; place++, at++) {
				ring_open_file(&ring, place, existing[at], O_RDONLY);
				ring_bytes(&ring, place, IORING_OP_READ, jobs[0].buffers[place],
					   BYTES);
				ring_close_file(&ring, place);
				ring_end(&ring);
			}
			check(ring_submit(&ring), "io_uring_enter", existing[0]);
			check(ring_wait(&ring, ring.half), "io_uring_enter", existing[0]);
		}
	}
#else
	for (; times > 0; times--) {
		for (at = 0; at < filled; at++) {
			long fd = check(do_open(existing[at], O_RDONLY), "open", existing[at]);

			check(do_read((int)fd, jobs[0].buffers[0], BYTES), "read", existing[at]);
			check(do_close((int)fd), "close", existing[at]);
		}
	}
#endif
	return now() - began;
}

static uint64_t list(long times, bool with_stat)
{
	uint64_t began = now();

	for (; times > 0; times--) {
		DIR *directory = opendir(".");
		struct dirent *entry;
		struct stat attributes;

		if (directory == NULL)
			fail("opendir", errno, ".");
		while ((entry = readdir(directory)) != NULL) {
			if (with_stat)
				check(do_stat(entry->d_name, &attributes), "stat", entry->d_name);
		}
		closedir(directory);
	}
	return now() - began;
}

static uint64_t look_up(long count, const char *tag)
{
	char name[LONGEST + 32];
	struct stat attributes;
	uint64_t began = now();
	long at;

	for (at = 0; at < count; at++) {
		long result;

		numbered(name, tag, at, FILL_LENGTH);
		result = do_stat(name, &attributes);
		if (result != -ENOENT)
			fail("stat of no file", -result, name);
	}
	return now() - began;
}

#endif
