/* sys/port_impl.h - for programs that include it: what they need of it is in sys/port.h */
#ifndef IOTOMY_SYS_PORT_IMPL_H
#define IOTOMY_SYS_PORT_IMPL_H

#include <sys/port.h>

#endif
