/* SPDX-License-Identifier: Apache-2.0 */
/* http_status.h - what an error of the warden is in HTTP: as the API answers it, and as the audit log has it. */
#ifndef CLOCHE_WIRE_HTTP_STATUS_H
#define CLOCHE_WIRE_HTTP_STATUS_H

int wire_http_status(int error); /* of an errno, positive */

#endif
