/* sys/devpoll.h - /dev/poll: see devpoll(7) */
#ifndef IOTOMY_SYS_DEVPOLL_H
#define IOTOMY_SYS_DEVPOLL_H

#include <poll.h>
#include <signal.h>

#ifdef __cplusplus
extern "C" {
#endif

/* In the events of a struct pollfd; Solaris' value is another one. */
#ifndef POLLREMOVE
#define POLLREMOVE 0x1000
#endif

/* Requests of ioctl(). */
#define DP_POLL	    0xD001
#define DP_ISPOLLED 0xD002
#define DP_PPOLL    0xD003

typedef struct dvpoll {
	struct pollfd *dp_fds;
	nfds_t dp_nfds;
	int dp_timeout;
	sigset_t *dp_setp;
} dvpoll_t;

#ifdef __cplusplus
}
#endif

#endif
