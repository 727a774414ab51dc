/* /dev/poll, from the sentences of its manual page. */
#include "test.h"
#include <sys/devpoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>

static int new_set(void)
{
	int set = open("/dev/poll", O_RDWR);

	CHECK(set >= 0);
	return set;
}

static void put(int set, int fd, int events)
{
	struct pollfd entry = {.fd = fd, .events = events, .revents = -1};

	CHECK(write(set, &entry, sizeof(entry)) == sizeof(entry));
}

/* The entries that have events now, sorted by descriptor. */
static int ask(int set, struct pollfd *list, int room, int timeout)
{
	struct dvpoll request = {.dp_fds = list, .dp_nfds = room, .dp_timeout = timeout};

	return ioctl(set, DP_POLL, &request);
}

static int only(int set, int fd)
{
	struct pollfd list[8] = {{0}};

	CHECK(ask(set, list, 8, 0) == 1 && list[0].fd == fd);
	return list[0].revents;
}

static void none(int set)
{
	struct pollfd list[8];

	memset(list, 0x5a, sizeof(list));
	CHECK(ask(set, list, 8, 0) == 0);
	CHECK(list[0].fd == 0x5a5a5a5a);
}

static void written_descriptors_are_polled(void)
{
	int set = new_set();
	struct pollfd list[8];
	int ends[2];

	new_pipe(ends);
	none(set);
	put(set, ends[0], POLLIN);
	none(set);
	CHECK(write(ends[1], "x", 1) == 1);
	CHECK(ask(set, list, 8, -1) == 1);
	CHECK(list[0].fd == ends[0] && list[0].events == POLLIN && list[0].revents == POLLIN);
	close(set);
}

static void events_are_the_level(void)
{
	int set = new_set();
	char byte;
	int ends[2];

	new_pipe(ends);
	put(set, ends[0], POLLIN);
	CHECK(write(ends[1], "x", 1) == 1);
	for (int round = 0; round < 3; round++)
		CHECK(only(set, ends[0]) == POLLIN);
	CHECK(read(ends[0], &byte, 1) == 1);
	none(set);
	close(set);
}

static void events_of_one_descriptor_are_ored(void)
{
	int set = new_set();
	struct pollfd list[8];
	struct pollfd twice[2];
	int pair[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	CHECK(write(pair[1], "x", 1) == 1);
	put(set, pair[0], POLLIN);
	put(set, pair[0], POLLOUT);
	CHECK(ask(set, list, 8, 0) == 1);
	CHECK(list[0].events == (POLLIN | POLLOUT) && list[0].revents == (POLLIN | POLLOUT));
	put(set, pair[0], POLLREMOVE);
	twice[0] = (struct pollfd){.fd = pair[0], .events = POLLIN};
	twice[1] = (struct pollfd){.fd = pair[0], .events = POLLOUT};
	CHECK(write(set, twice, sizeof(twice)) == sizeof(twice));
	CHECK(only(set, pair[0]) == (POLLIN | POLLOUT));
	close(set);
}

static void a_removed_descriptor_is_not_polled(void)
{
	int set = new_set();
	struct pollfd changes[2];
	int ends[2];

	new_pipe(ends);
	CHECK(write(ends[1], "x", 1) == 1);
	put(set, ends[0], POLLIN);
	put(set, ends[0], POLLREMOVE);
	none(set);
	put(set, ends[0], POLLREMOVE);
	put(set, 12345, POLLREMOVE);
	/* The only way to want less is to remove and to add again. */
	put(set, ends[1], POLLOUT);
	changes[0] = (struct pollfd){.fd = ends[1], .events = POLLREMOVE};
	changes[1] = (struct pollfd){.fd = ends[1], .events = POLLPRI};
	CHECK(write(set, changes, sizeof(changes)) == sizeof(changes));
	none(set);
	close(set);
}

static void pwrite_is_write(void)
{
	int set = new_set();
	int ends[2];
	struct pollfd entry;

	new_pipe(ends);
	entry = (struct pollfd){.fd = ends[1], .events = POLLOUT};
	CHECK(pwrite(set, &entry, sizeof(entry), 0) == sizeof(entry));
	CHECK(only(set, ends[1]) == POLLOUT);
	close(set);
}

static void several_sets_are_apart(void)
{
	int sets[2] = {new_set(), new_set()};
	int ends[2];

	new_pipe(ends);
	CHECK(write(ends[1], "x", 1) == 1);
	put(sets[0], ends[0], POLLIN);
	none(sets[1]);
	put(sets[1], ends[1], POLLOUT);
	CHECK(only(sets[0], ends[0]) == POLLIN && only(sets[1], ends[1]) == POLLOUT);
	close(sets[0]);
	CHECK(only(sets[1], ends[1]) == POLLOUT);
	close(sets[1]);
}

static void the_timeout_is_in_milliseconds(void)
{
	int set = new_set();
	struct timespec before;
	struct timespec after;
	struct pollfd list[1];

	clock_gettime(CLOCK_MONOTONIC, &before);
	CHECK(ask(set, list, 1, 15) == 0);
	clock_gettime(CLOCK_MONOTONIC, &after);
	CHECK((after.tv_sec - before.tv_sec) * 1000000000L + after.tv_nsec - before.tv_nsec >=
	      15000000);
	/* Without room it is a sleep. */
	CHECK(ask(set, NULL, 0, 5) == 0);
	close(set);
}

static void no_more_are_returned_than_there_is_room_for(void)
{
	int set = new_set();
	struct pollfd list[200];
	int seen[1024] = {0};
	int ends[2];

	new_pipe(ends);
	for (int at = 0; at < 100; at++)
		put(set, fcntl(ends[1], F_DUPFD, 300 + at), POLLOUT);
	memset(list, 0, sizeof(list));
	CHECK(ask(set, list, 30, 0) == 30 && list[30].revents == 0);
	CHECK(ask(set, list, 200, 0) == 100);
	for (int at = 0; at < 100; at++)
		CHECK(seen[list[at].fd]++ == 0);
	for (int at = 0; at < 100; at++)
		close(300 + at);
	close(set);
}

static void ispolled_tells_of_one_descriptor(void)
{
	int set = new_set();
	int ends[2];
	struct pollfd entry;

	new_pipe(ends);
	entry = (struct pollfd){.fd = ends[0], .events = 77, .revents = 78};
	CHECK(ioctl(set, DP_ISPOLLED, &entry) == 0);
	CHECK(entry.events == 77 && entry.revents == 78);
	put(set, ends[0], POLLIN | POLLPRI);
	CHECK(ioctl(set, DP_ISPOLLED, &entry) == 1);
	CHECK(entry.fd == ends[0] && entry.events == 0 && entry.revents == (POLLIN | POLLPRI));
	put(set, ends[0], POLLREMOVE);
	CHECK(ioctl(set, DP_ISPOLLED, &entry) == 0);
	close(set);
}

static void a_closed_descriptor_is_pollnval_until_it_is_removed(void)
{
	int set = new_set();
	int ends[2];
	int copy;

	new_pipe(ends);
	copy = dup(ends[0]);
	put(set, ends[0], POLLIN);
	CHECK(write(ends[1], "x", 1) == 1);
	close(ends[0]);
	for (int round = 0; round < 3; round++)
		CHECK(only(set, ends[0]) == POLLNVAL);
	put(set, ends[0], POLLREMOVE);
	none(set);
	/* One that was never open, too. */
	put(set, 901, POLLIN);
	CHECK(only(set, 901) == POLLNVAL);
	put(set, -1, POLLIN);
	CHECK(only(set, 901) == POLLNVAL);
	close(copy);
	close(set);
}

static void a_number_that_is_reused_is_polled_as_what_it_is(void)
{
	int set = new_set();
	int first[2];
	int second[2];
	int copy;

	new_pipe(first);
	new_pipe(second);
	copy = dup(first[0]);
	put(set, first[0], POLLIN);
	close(first[0]);
	CHECK(fcntl(second[0], F_DUPFD, first[0]) == first[0]);
	CHECK(write(first[1], "x", 1) == 1);
	none(set);
	CHECK(write(second[1], "x", 1) == 1);
	CHECK(only(set, first[0]) == POLLIN);
	/* Replaced in one step. */
	CHECK(dup2(copy, first[0]) == first[0]);
	CHECK(only(set, first[0]) == POLLIN);
	close(copy);
	close(set);
}

static void regular_files_are_always_ready(void)
{
	int set = new_set();
	int file = open("/proc/self/exe", O_RDONLY);
	struct pollfd list[4];
	int ends[2];

	CHECK(file >= 0);
	put(set, file, POLLPRI);
	none(set);
	put(set, file, POLLIN);
	CHECK(only(set, file) == POLLIN && only(set, file) == POLLIN);
	new_pipe(ends);
	put(set, ends[1], POLLOUT);
	CHECK(ask(set, list, 4, -1) == 2);
	close(file);
	CHECK(ask(set, list, 4, -1) == 2);
	put(set, ends[1], POLLREMOVE);
	CHECK(only(set, file) == POLLNVAL);
	close(set);
}

static void hang_ups_and_errors_come_unasked(void)
{
	int set = new_set();
	int ends[2];

	new_pipe(ends);
	put(set, ends[0], 0);
	none(set);
	close(ends[1]);
	CHECK(only(set, ends[0]) == POLLHUP);
	close(set);
}

static void a_child_may_only_close(void)
{
	int set = new_set();
	struct pollfd entry = {.fd = 0, .events = POLLIN};
	int ends[2];

	new_pipe(ends);
	put(set, ends[1], POLLOUT);
	IN_CHILD({
		struct pollfd list[2];
		int own;
		FAILS(write(set, &entry, sizeof(entry)), EACCES);
		FAILS(pwrite(set, &entry, sizeof(entry), 0), EACCES);
		FAILS(ask(set, list, 2, 0), EACCES);
		FAILS(ioctl(set, DP_ISPOLLED, &entry), EACCES);
		/* What it closes stays in its parent's set. */
		CHECK(close(ends[1]) == 0);
		CHECK(close(set) == 0);
		own = new_set();
		put(own, ends[0], POLLIN);
		none(own);
	});
	CHECK(only(set, ends[1]) == POLLOUT);
	close(set);
}

static void errors_are_those_of_the_page(void)
{
	int set = new_set();
	struct pollfd list[4] = {{0}};
	struct dvpoll request = {.dp_fds = list, .dp_nfds = 4, .dp_timeout = 0};
	void *volatile nowhere = NULL;
	struct rlimit limit;

	FAILS(write(set, list, sizeof(list[0]) - 1), EINVAL);
	FAILS(write(set, nowhere, sizeof(list[0])), EFAULT);
	CHECK(write(set, list, 0) == 0);
	FAILS(ioctl(set, DP_POLL, NULL), EFAULT);
	FAILS(ioctl(set, DP_ISPOLLED, NULL), EFAULT);
	FAILS(ioctl(set, 0x1234, list), EINVAL);
	request.dp_fds = NULL;
	FAILS(ioctl(set, DP_POLL, &request), EFAULT);
	request.dp_fds = list;
	CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	request.dp_nfds = limit.rlim_cur + 1;
	FAILS(ioctl(set, DP_POLL, &request), EINVAL);
	request.dp_nfds = limit.rlim_cur;
	CHECK(ioctl(set, DP_POLL, &request) == 0);
	CHECK(close(set) == 0);
	FAILS(ioctl(set, DP_POLL, &request), EBADF);
	FAILS(write(set, list, sizeof(list[0])), EBADF);
}

static void a_limit_that_is_lowered_leaves_the_room(void)
{
	IN_CHILD({
		int set = new_set();
		struct pollfd list[64];
		struct rlimit limit = {30, 30};
		CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
		put(set, 2, POLLNVAL);
		CHECK(ask(set, list, 64, 0) >= 0);
	});
}

static void other_files_are_written_and_asked_as_ever(void)
{
	int set = new_set();
	char text[] = "/tmp/portsXXXXXX";
	int fd = mkstemp(text);
	int left;
	int ends[2];

	CHECK(write(fd, "abc", 3) == 3 && pwrite(fd, "X", 1, 1) == 1);
	CHECK(pread(fd, text, 3, 0) == 3 && !memcmp(text, "aXc", 3));
	memcpy(text, "/tm", 3);
	new_pipe(ends);
	CHECK(write(ends[1], "four", 4) == 4);
	CHECK(ioctl(ends[0], FIONREAD, &left) == 0 && left == 4);
	FAILS(ioctl(fd, DP_POLL, &left), ENOTTY);
	FAILS(write(ends[0], "x", 1), EBADF);
	FAILS(open("/dev/pollx", O_RDONLY), ENOENT);
	FAILS(open("/dev/none", O_CREAT | O_EXCL | O_DIRECTORY, 0600), EINVAL);
	close(fd);
	fd = open(text, O_CREAT | O_TRUNC | O_RDWR, 0640);
	struct stat status;
	CHECK(fstat(fd, &status) == 0 && (status.st_mode & 0777) == 0600);
	unlink(text);
	close(fd);
	fd = openat(AT_FDCWD, text, O_CREAT | O_EXCL | O_RDWR, 0604);
	CHECK(fstat(fd, &status) == 0 && (status.st_mode & 0777) == 0604);
	unlink(text);
	close(fd);
	close(set);
}

static void duplicates_are_the_set(void)
{
	int set = new_set();
	int copy = dup(set);
	int ends[2];

	new_pipe(ends);
	put(copy, ends[1], POLLOUT);
	CHECK(only(set, ends[1]) == POLLOUT);
	close(set);
	CHECK(only(copy, ends[1]) == POLLOUT);
	close(copy);
}

static void the_descriptor_is_closed_on_exec_if_it_is_asked_for(void)
{
	int set = new_set();

	CHECK(fcntl(set, F_GETFD) == 0);
	close(set);
	set = open("/dev/poll", O_RDWR | O_CLOEXEC);
	CHECK(fcntl(set, F_GETFD) == FD_CLOEXEC);
	close(set);
}

static void return_only(int signal)
{
	(void)signal;
}

static void a_signal_interrupts_and_a_mask_defers_it(void)
{
	struct sigaction action = {.sa_handler = return_only};
	struct itimerval often = {{0, 2000}, {0, 2000}};
	struct itimerval off = {{0, 0}, {0, 0}};
	struct pollfd list[1];
	struct dvpoll request = {.dp_fds = list, .dp_nfds = 1, .dp_timeout = 20};
	sigset_t mask;
	int set = new_set();

	CHECK(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
	FAILS(ask(set, list, 1, -1), EINTR);
	sigemptyset(&mask);
	sigaddset(&mask, SIGALRM);
	request.dp_setp = &mask;
	CHECK(ioctl(set, DP_PPOLL, &request) == 0);
	request.dp_setp = NULL;
	request.dp_timeout = -1;
	FAILS(ioctl(set, DP_PPOLL, &request), EINTR);
	/* Blocked by the thread, and not by the mask. */
	CHECK(sigprocmask(SIG_BLOCK, &mask, NULL) == 0);
	sigemptyset(&mask);
	request.dp_setp = &mask;
	FAILS(ioctl(set, DP_PPOLL, &request), EINTR);
	setitimer(ITIMER_REAL, &off, NULL);
	close(set);
}

static int shared_set;
static int shared_ends[2];

static void *add_what_is_ready(void *argument)
{
	put(shared_set, *(int *)argument, POLLOUT | POLLIN);
	return NULL;
}

static void a_thread_that_waits_learns_of_what_others_write(void)
{
	int file = open("/proc/self/exe", O_RDONLY);
	struct pollfd list[2];
	pthread_t thread;

	new_pipe(shared_ends);
	for (int round = 0; round < 3; round++) {
		int fd = round == 0 ? shared_ends[1] : round == 1 ? file : 950;

		shared_set = new_set();
		put(shared_set, shared_ends[0], POLLIN);
		CHECK(pthread_create(&thread, NULL, add_what_is_ready, &fd) == 0);
		CHECK(ask(shared_set, list, 2, -1) == 1 && list[0].fd == fd);
		CHECK(pthread_join(thread, NULL) == 0);
		close(shared_set);
	}
	close(file);
}

static void *change_all_the_time(void *argument)
{
	int copy;

	(void)argument;
	for (int round = 0; round < 500; round++) {
		copy = fcntl(shared_ends[1], F_DUPFD, 960);
		put(shared_set, copy, POLLOUT);
		close(copy);
		put(shared_set, copy, POLLREMOVE);
	}
	return NULL;
}

static void sets_that_threads_change_and_poll_at_once_stay_whole(void)
{
	struct pollfd list[8];
	pthread_t threads[2];
	int count;

	new_pipe(shared_ends);
	shared_set = new_set();
	put(shared_set, shared_ends[1], POLLOUT);
	for (int at = 0; at < 2; at++)
		CHECK(pthread_create(&threads[at], NULL, change_all_the_time, NULL) == 0);
	for (int round = 0; round < 2000; round++) {
		count = ask(shared_set, list, 8, -1);
		CHECK(count >= 1 && count <= 3);
	}
	for (int at = 0; at < 2; at++)
		CHECK(pthread_join(threads[at], NULL) == 0);
	CHECK(only(shared_set, shared_ends[1]) == POLLOUT);
	close(shared_set);
}

MAIN(CASE(written_descriptors_are_polled), CASE(events_are_the_level),
     CASE(events_of_one_descriptor_are_ored), CASE(a_removed_descriptor_is_not_polled),
     CASE(pwrite_is_write), CASE(several_sets_are_apart), CASE(the_timeout_is_in_milliseconds),
     CASE(no_more_are_returned_than_there_is_room_for), CASE(ispolled_tells_of_one_descriptor),
     CASE(a_closed_descriptor_is_pollnval_until_it_is_removed),
     CASE(a_number_that_is_reused_is_polled_as_what_it_is), CASE(regular_files_are_always_ready),
     CASE(hang_ups_and_errors_come_unasked), CASE(a_child_may_only_close),
     CASE(errors_are_those_of_the_page), CASE(a_limit_that_is_lowered_leaves_the_room),
     CASE(other_files_are_written_and_asked_as_ever), CASE(duplicates_are_the_set),
     CASE(the_descriptor_is_closed_on_exec_if_it_is_asked_for),
     CASE(a_signal_interrupts_and_a_mask_defers_it),
     CASE(a_thread_that_waits_learns_of_what_others_write),
     CASE(sets_that_threads_change_and_poll_at_once_stay_whole))
