/* SPDX-License-Identifier: Apache-2.0 */
/* build_main.h - the thread of one build: the base, the steps, the finalization. What it works on is build_run.h. */
#ifndef CLOCHE_WARDEN_BUILD_BUILD_MAIN_H
#define CLOCHE_WARDEN_BUILD_BUILD_MAIN_H

void build_run_main(void *run); /* struct build_run */

#endif
