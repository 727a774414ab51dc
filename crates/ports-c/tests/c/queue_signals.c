/* kqueue's signals: they are counted beside what the program does with them. */
#include "queue.h"
#include <sys/syscall.h>

static volatile sig_atomic_t handled;
static volatile sig_atomic_t sender;

static void handle(int signal)
{
	(void)signal;
	handled++;
}

static void handle_with_information(int signal, siginfo_t *information, void *context)
{
	(void)signal;
	(void)context;
	handled++;
	sender = information->si_pid;
}

static void is_told(int queue, int signal, int64_t count)
{
	struct kevent event = one(queue);

	CHECK(event.ident == (uintptr_t)signal && event.filter == EVFILT_SIGNAL);
	CHECK(event.data == count && event.flags & EV_CLEAR);
	no_event(queue);
}

static void an_ignored_signal_is_told(void)
{
	int queue = new_queue();

	CHECK(signal(SIGUSR1, SIG_IGN) != SIG_ERR);
	put(queue, SIGUSR1, EVFILT_SIGNAL, EV_ADD);
	no_event(queue);
	for (int round = 0; round < 3; round++)
		CHECK(raise(SIGUSR1) == 0);
	is_told(queue, SIGUSR1, 3);
	/* As libevent does it: the note first, then the disposition. */
	put(queue, SIGUSR2, EVFILT_SIGNAL, EV_ADD);
	CHECK(signal(SIGUSR2, SIG_IGN) == SIG_DFL);
	CHECK(raise(SIGUSR2) == 0);
	is_told(queue, SIGUSR2, 1);
	CHECK(signal(SIGUSR2, SIG_DFL) == SIG_IGN);
	CHECK(signal(SIGUSR1, SIG_DFL) == SIG_IGN);
	close(queue);
}

static void a_handler_runs_as_ever(void)
{
	struct sigaction action = {.sa_sigaction = handle_with_information, .sa_flags = SA_SIGINFO};
	struct sigaction old;
	int queue = new_queue();

	handled = 0;
	CHECK(signal(SIGUSR1, handle) == SIG_DFL);
	put(queue, SIGUSR1, EVFILT_SIGNAL, EV_ADD);
	CHECK(raise(SIGUSR1) == 0 && handled == 1);
	is_told(queue, SIGUSR1, 1);
	CHECK(sigaction(SIGUSR1, &action, &old) == 0 && old.sa_handler == handle);
	CHECK(sigaction(SIGUSR1, NULL, &old) == 0);
	CHECK(old.sa_sigaction == handle_with_information && old.sa_flags & SA_SIGINFO);
	CHECK(kill(getpid(), SIGUSR1) == 0 && handled == 2 && sender == getpid());
	is_told(queue, SIGUSR1, 1);
	/* The disposition is the program's own when nobody counts. */
	put(queue, SIGUSR1, EVFILT_SIGNAL, EV_DELETE);
	CHECK(sigaction(SIGUSR1, NULL, &old) == 0 && old.sa_sigaction == handle_with_information);
	CHECK(raise(SIGUSR1) == 0 && handled == 3);
	no_event(queue);
	CHECK(signal(SIGUSR1, SIG_DFL) != SIG_ERR);
	close(queue);
}

static void a_handler_for_once_runs_once(void)
{
	struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESETHAND};
	struct sigaction old;
	int queue = new_queue();

	handled = 0;
	put(queue, SIGURG, EVFILT_SIGNAL, EV_ADD);
	CHECK(sigaction(SIGURG, &action, NULL) == 0);
	CHECK(raise(SIGURG) == 0 && raise(SIGURG) == 0 && handled == 1);
	CHECK(sigaction(SIGURG, NULL, &old) == 0 && old.sa_handler == SIG_DFL);
	is_told(queue, SIGURG, 2);
	close(queue);
}

static void a_blocked_signal_is_told_and_stays_pending(void)
{
	sigset_t set;
	int queue = new_queue();

	handled = 0;
	CHECK(signal(SIGUSR1, handle) == SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	put(queue, SIGUSR1, EVFILT_SIGNAL, EV_ADD);
	for (int round = 1; round <= 3; round++) {
		CHECK(kill(getpid(), SIGUSR1) == 0);
		is_told(queue, SIGUSR1, 1);
		CHECK(handled == round - 1);
		CHECK(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0 && handled == round);
		no_event(queue);
		CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	}
	CHECK(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
	CHECK(signal(SIGUSR1, SIG_DFL) == handle);
	close(queue);
}

static void without_a_handler_it_does_what_it_does(void)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		int queue = new_queue();
		put(queue, SIGTERM, EVFILT_SIGNAL, EV_ADD);
		raise(SIGTERM);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	/* A process that it stops goes on, and counts the next one, too. */
	child = fork();
	if (child == 0) {
		int queue = new_queue();
		put(queue, SIGTSTP, EVFILT_SIGNAL, EV_ADD);
		CHECK(setpgid(0, 0) == 0);
		for (int round = 0; round < 2; round++) {
			raise(SIGSTOP);
			CHECK(signal(SIGTSTP, round ? SIG_IGN : SIG_DFL) != SIG_ERR);
		}
		CHECK(raise(SIGTSTP) == 0);
		is_told(queue, SIGTSTP, 1);
		_exit(0);
	}
	for (int round = 0; round < 2; round++) {
		CHECK(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
		CHECK(kill(child, SIGCONT) == 0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void ends_of_children_are_told_unless_they_are_ignored(void)
{
	int queue = new_queue();
	int status;
	pid_t child;

	put(queue, SIGCHLD, EVFILT_SIGNAL, EV_ADD);
	child = fork();
	if (child == 0)
		_exit(4);
	is_told(queue, SIGCHLD, 1);
	CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 4);
	CHECK(signal(SIGCHLD, SIG_IGN) == SIG_DFL);
	child = fork();
	if (child == 0)
		_exit(4);
	/* It leaves no zombie. */
	FAILS(waitpid(child, &status, 0), ECHILD);
	no_event(queue);
	CHECK(signal(SIGCHLD, SIG_DFL) == SIG_IGN);
	close(queue);
}

static void a_child_has_the_programs_dispositions(void)
{
	int queue = new_queue();

	handled = 0;
	CHECK(signal(SIGUSR1, handle) == SIG_DFL);
	put(queue, SIGUSR1, EVFILT_SIGNAL, EV_ADD);
	IN_CHILD({
		int own;
		CHECK(raise(SIGUSR1) == 0 && handled == 1);
		/* As daemons do: without a word to anybody. */
		CHECK(syscall(SYS_close_range, 3, ~0U, 0) == 0);
		own = new_queue();
		put(own, SIGUSR1, EVFILT_SIGNAL, EV_ADD);
		CHECK(raise(SIGUSR1) == 0 && handled == 2);
		is_told(own, SIGUSR1, 1);
		CHECK(signal(SIGUSR1, SIG_IGN) == handle);
	});
	no_event(queue);
	CHECK(signal(SIGUSR1, SIG_DFL) == handle);
	close(queue);
}

static void *send_signals(void *argument)
{
	pthread_t main_thread = *(pthread_t *)argument;

	nanosleep(&soon, NULL);
	CHECK(pthread_kill(main_thread, SIGUSR1) == 0);
	return NULL;
}

static void a_wait_is_interrupted_by_what_has_a_handler_and_no_note_only(void)
{
	struct kevent event;
	pthread_t own = pthread_self();
	pthread_t thread;
	int queue = new_queue();
	int other = new_queue();

	/* No note, and a handler. */
	CHECK(signal(SIGUSR1, handle) == SIG_DFL);
	CHECK(pthread_create(&thread, NULL, send_signals, &own) == 0);
	FAILS(kevent(queue, NULL, 0, &event, 1, NULL), EINTR);
	CHECK(pthread_join(thread, NULL) == 0);
	/* A note here: the event is told. */
	put(queue, SIGUSR1, EVFILT_SIGNAL, EV_ADD);
	CHECK(pthread_create(&thread, NULL, send_signals, &own) == 0);
	CHECK(one(queue).data == 1);
	CHECK(pthread_join(thread, NULL) == 0);
	/* Nothing runs: a wait elsewhere goes on. */
	CHECK(signal(SIGUSR1, SIG_IGN) == handle);
	put_with(other, 1, EVFILT_TIMER, EV_ADD | EV_ONESHOT, 0, 60, NULL);
	CHECK(pthread_create(&thread, NULL, send_signals, &own) == 0);
	CHECK(one(other).filter == EVFILT_TIMER);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(signal(SIGUSR1, SIG_DFL) == SIG_IGN);
	close(queue);
	close(other);
}

static void a_program_without_notes_sees_nothing(void)
{
	struct sigaction action = {.sa_handler = handle};
	struct sigaction old;

	handled = 0;
	CHECK(sigaction(SIGHUP, &action, &old) == 0 && old.sa_handler == SIG_DFL);
	CHECK(raise(SIGHUP) == 0 && handled == 1);
	FAILS(sigaction(0, &action, NULL), EINVAL);
	FAILS(sigaction(65, &action, NULL), EINVAL);
	FAILS(sigaction(SIGKILL, &action, NULL), EINVAL);
	CHECK(signal(SIGKILL, SIG_IGN) == SIG_ERR && errno == EINVAL);
	CHECK(signal(SIGHUP, SIG_DFL) == handle);
}

/* Whatever this program has inherited. */
static void begin_with_the_default_actions(void)
{
	int signals[] = {SIGHUP, SIGUSR1, SIGUSR2, SIGTERM, SIGTSTP, SIGURG, SIGCHLD};

	for (size_t at = 0; at < sizeof(signals) / sizeof(*signals); at++)
		CHECK(signal(signals[at], SIG_DFL) != SIG_ERR);
}

MAIN(CASE(begin_with_the_default_actions), CASE(a_program_without_notes_sees_nothing),
     CASE(an_ignored_signal_is_told), CASE(a_handler_runs_as_ever),
     CASE(a_handler_for_once_runs_once), CASE(a_blocked_signal_is_told_and_stays_pending),
     CASE(without_a_handler_it_does_what_it_does),
     CASE(ends_of_children_are_told_unless_they_are_ignored),
     CASE(a_child_has_the_programs_dispositions),
     CASE(a_wait_is_interrupted_by_what_has_a_handler_and_no_note_only))
