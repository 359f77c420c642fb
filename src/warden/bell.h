/* bell.h - a box's agent asks for a nursery (boot.h, BOOT_BELL), and a fork of the zygote goes in. Boxes have one that were born while
 * their build's zygote was ready, until they sleep: criu makes a restored box's namespaces so that no zygote may enter, and
 * one that another warden made belongs to a zygote that is gone. The agents of those help themselves. */
#ifndef CLOCHE_BELL_H
#define CLOCHE_BELL_H

#include "warden/box.h"

void bell_hang(struct box *b);
void bell_take(struct box *b);

#endif
