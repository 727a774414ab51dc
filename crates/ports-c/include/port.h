/* port.h - event ports: see port_create(3iotomy) */
#ifndef IOTOMY_PORT_H
#define IOTOMY_PORT_H

#include <signal.h>
#include <stdint.h>
#include <sys/port.h>
#include <sys/types.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A notification of struct sigevent. The value is not Solaris' 4, which is
 * SIGEV_THREAD_ID of Linux. sigev_value.sival_ptr points to a port_notify_t.
 */
#ifndef SIGEV_PORT
#define SIGEV_PORT 0x504f
#endif

/* The clock of Solaris that cannot be set. */
#ifndef CLOCK_HIGHRES
#define CLOCK_HIGHRES CLOCK_MONOTONIC
#endif

int port_create(void);
int port_associate(int port, int source, uintptr_t object, int events, void *user);
int port_dissociate(int port, int source, uintptr_t object);
int port_send(int port, int events, void *user);
int port_sendn(int ports[], int errors[], uint_t nent, int events, void *user);
int port_get(int port, port_event_t *pe, const timespec_t *timeout);
int port_getn(int port, port_event_t list[], uint_t max, uint_t *nget, const timespec_t *timeout);
int port_alert(int port, int flags, int events, void *user);

#ifdef __cplusplus
}
#endif

#endif
