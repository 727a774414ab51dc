/*
 * The rounds of the experiment `files` with nothing around the calls: no check of a result, no
 * choice, no clock except around a batch. Answers each line "round N" of standard input with the
 * wall time and the CPU time in ns that N rounds took.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static inline long call(long number, long a, long b, long c, long d)
{
	register long fourth __asm__("r10") = d;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
			 : "rcx", "r11", "memory");
	return result;
}

static long long clock_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int main(void)
{
	static char name[] = "annnnnnnnnnnnn", buffer[10];
	char line[64];
	long count;

	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin) != NULL && sscanf(line, "round %ld", &count) == 1) {
		long long cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
		long long wall = clock_ns(CLOCK_MONOTONIC);
		long fd;

		for (; count > 0; count--) {
			fd = call(SYS_openat, AT_FDCWD, (long)name, O_CREAT | O_WRONLY | O_TRUNC,
				  0600);
			call(SYS_write, fd, (long)"1234567890", 10, 0);
			call(SYS_close, fd, 0, 0, 0);
			fd = call(SYS_openat, AT_FDCWD, (long)name, O_RDONLY, 0600);
			call(SYS_read, fd, (long)buffer, 10, 0);
			call(SYS_close, fd, 0, 0, 0);
			call(SYS_unlink, (long)name, 0, 0, 0);
		}
		wall = clock_ns(CLOCK_MONOTONIC) - wall;
		cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
		printf("%lld %lld\n", wall, cpu);
		fflush(stdout);
	}
	return 0;
}
