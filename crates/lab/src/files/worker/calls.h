/*
 * The calls of the loop, in two variants: through the functions of the C library, or, with RAW, by
 * the `syscall` instruction. Both make the same system calls with the same arguments, so that they
 * differ only in the library. A result below 0 is a negated error number.
 */
#ifndef CALLS_H
#define CALLS_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MODE 0600

#ifdef RAW

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

#define do_open(path, flags)	  call(SYS_openat, AT_FDCWD, (long)(path), (flags), MODE)
#define do_write(fd, from, bytes) call(SYS_write, (fd), (long)(from), (bytes), 0)
#define do_read(fd, to, bytes)	  call(SYS_read, (fd), (long)(to), (bytes), 0)
#define do_close(fd)		  call(SYS_close, (fd), 0, 0, 0)
#define do_fsync(fd)		  call(SYS_fsync, (fd), 0, 0, 0)
#define do_fdatasync(fd)	  call(SYS_fdatasync, (fd), 0, 0, 0)
#define do_mknod(path)		  call(SYS_mknod, (long)(path), S_IFREG | MODE, 0, 0)
#define do_unlink(path)		  call(SYS_unlink, (long)(path), 0, 0, 0)
#define do_rename(from, to)	  call(SYS_rename, (long)(from), (long)(to), 0, 0)
#define do_stat(path, into)	  call(SYS_newfstatat, AT_FDCWD, (long)(path), (long)(into), 0)

#else

static inline long outcome(long result)
{
	return result < 0 ? -errno : result;
}

#define do_open(path, flags)	  outcome(open((path), (flags), MODE))
#define do_write(fd, from, bytes) outcome(write((fd), (from), (bytes)))
#define do_read(fd, to, bytes)	  outcome(read((fd), (to), (bytes)))
#define do_close(fd)		  outcome(close(fd))
#define do_fsync(fd)		  outcome(fsync(fd))
#define do_fdatasync(fd)	  outcome(fdatasync(fd))
#define do_mknod(path)		  outcome(mknod((path), S_IFREG | MODE, 0))
#define do_unlink(path)		  outcome(unlink(path))
#define do_rename(from, to)	  outcome(rename((from), (to)))
#define do_stat(path, into)	  outcome(fstatat(AT_FDCWD, (path), (into), 0))

#endif

#endif
