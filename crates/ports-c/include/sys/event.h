/* sys/event.h - kqueue: see kqueue(3iotomy) */
#ifndef IOTOMY_SYS_EVENT_H
#define IOTOMY_SYS_EVENT_H

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Filters. */
#define EVFILT_READ   (-1)
#define EVFILT_WRITE  (-2)
#define EVFILT_VNODE  (-4)
#define EVFILT_PROC   (-5)
#define EVFILT_SIGNAL (-6)
#define EVFILT_TIMER  (-7)
#define EVFILT_USER   (-11)

/* What a change does. */
#define EV_ADD	   0x0001
#define EV_DELETE  0x0002
#define EV_ENABLE  0x0004
#define EV_DISABLE 0x0008

/* How events are returned. */
#define EV_ONESHOT	0x0010
#define EV_CLEAR	0x0020
#define EV_RECEIPT	0x0040
#define EV_DISPATCH	0x0080
#define EV_FORCEONESHOT 0x0100
#define EV_KEEPUDATA	0x0200
#define EV_SYSFLAGS	0xF000

/* What is so in an event. */
#define EV_ERROR 0x4000
#define EV_EOF	 0x8000

/* fflags of EVFILT_READ and EVFILT_WRITE. */
#define NOTE_LOWAT     0x0001
#define NOTE_FILE_POLL 0x0002

/* fflags of EVFILT_VNODE. */
#define NOTE_DELETE	 0x0001
#define NOTE_WRITE	 0x0002
#define NOTE_EXTEND	 0x0004
#define NOTE_ATTRIB	 0x0008
#define NOTE_LINK	 0x0010
#define NOTE_RENAME	 0x0020
#define NOTE_REVOKE	 0x0040
#define NOTE_OPEN	 0x0080
#define NOTE_CLOSE	 0x0100
#define NOTE_CLOSE_WRITE 0x0200
#define NOTE_READ	 0x0400

/* fflags of EVFILT_PROC; not every process is told of more than NOTE_EXIT. */
#define NOTE_EXIT     0x80000000U
#define NOTE_FORK     0x40000000U
#define NOTE_EXEC     0x20000000U
#define NOTE_TRACK    0x00000001U
#define NOTE_TRACKERR 0x00000002U
#define NOTE_CHILD    0x00000004U

/* fflags of EVFILT_TIMER. */
#define NOTE_SECONDS  0x0001
#define NOTE_MSECONDS 0x0002
#define NOTE_USECONDS 0x0004
#define NOTE_NSECONDS 0x0008
#define NOTE_ABSTIME  0x0010

/* fflags of EVFILT_USER. */
#define NOTE_FFNOP	0x00000000U
#define NOTE_FFAND	0x40000000U
#define NOTE_FFOR	0x80000000U
#define NOTE_FFCOPY	0xC0000000U
#define NOTE_FFCTRLMASK 0xC0000000U
#define NOTE_FFLAGSMASK 0x00FFFFFFU
#define NOTE_TRIGGER	0x01000000U

struct kevent {
	uintptr_t ident;
	short filter;
	unsigned short flags;
	unsigned int fflags;
	int64_t data;
	void *udata;
	uint64_t ext[4];
};

#define EV_SET(event, id, what, how, how_more, amount, value)    \
	do {                                                     \
		struct kevent *ev_set_event = (event);           \
		ev_set_event->ident = (uintptr_t)(id);           \
		ev_set_event->filter = (short)(what);            \
		ev_set_event->flags = (unsigned short)(how);     \
		ev_set_event->fflags = (unsigned int)(how_more); \
		ev_set_event->data = (int64_t)(amount);          \
		ev_set_event->udata = (void *)(value);           \
		ev_set_event->ext[0] = 0;                        \
		ev_set_event->ext[1] = 0;                        \
		ev_set_event->ext[2] = 0;                        \
		ev_set_event->ext[3] = 0;                        \
	} while (0)

/* Flags of kqueuex(). */
#define KQUEUE_CLOEXEC 0x00000001

int kqueue(void);
int kqueue1(int flags);
int kqueuex(unsigned int flags);
int kevent(int kq, const struct kevent *changelist, int nchanges, struct kevent *eventlist,
	   int nevents, const struct timespec *timeout);

#ifdef __cplusplus
}
#endif

#endif
