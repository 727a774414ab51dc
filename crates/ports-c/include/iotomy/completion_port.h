/* iotomy/completion_port.h - the queue of completion ports: see completion_port(3iotomy) */
#ifndef IOTOMY_COMPLETION_PORT_H
#define IOTOMY_COMPLETION_PORT_H

#include <stdint.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A port: it is of one process, and has no descriptor. */
typedef struct completion_port completion_port_t;

typedef struct completion {
	uintptr_t completion_key;
	uint32_t completion_bytes;
	void *completion_user;
} completion_t;

completion_port_t *completion_port_create(unsigned int concurrency);
int completion_port_post(completion_port_t *port, const completion_t *completion);
int completion_port_get(completion_port_t *port, completion_t list[], unsigned int max,
			const struct timespec *timeout);
int completion_port_close(completion_port_t *port);
void completion_port_free(completion_port_t *port);

#ifdef __cplusplus
}
#endif

#endif
