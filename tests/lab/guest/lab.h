/*
 * What a program says to the counting plugin: instructions that do nothing on any processor
 * (seven-byte nops with a number in their address part).
 *
 * Between lab_begin() and lab_end() user-mode accesses are counted; tests/lab/guest/mark.c puts
 * them around a whole program. A program may choose a part of itself with lab_region_begin() and
 * lab_region_end(): the first of them forgets what was counted before, and from then on only
 * regions count.
 */
#ifndef NPG_LAB_H
#define NPG_LAB_H

#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#define LAB_MARK_BYTES(number) ".byte 0x0f,0x1f,0x80," #number ",0x61,0x6d,0x75"
#define LAB_MARK(number)       __asm__ volatile(LAB_MARK_BYTES(number)::: "memory")

#define lab_begin()        LAB_MARK(1)
#define lab_end()          LAB_MARK(2)
#define lab_region_begin() LAB_MARK(3)
#define lab_region_end()   LAB_MARK(4)

/*
 * Tells the plugin a number: a plugin of QEMU 7.2 sees addresses only, no values and no registers.
 * Between the marks there is one load for each 4 bits, lowest first, from @table[digit].
 */
static inline void lab_say(uint64_t number)
{
	static const volatile unsigned char table[16] __attribute__((aligned(16)));

	for (int i = 0; i < 16; i++) {
		const volatile unsigned char *digit = &table[(number >> (4 * i)) & 15];

		__asm__ volatile(LAB_MARK_BYTES(5) "\n\tmovb (%0), %%al" ::"r"(digit)
				 : "al", "memory");
	}
}

/*
 * Asks the lab to read this process's page tables (lab run --walk) and waits for the answer, mostly
 * in user mode, where the lab must find it. Return: 0; -1 if nobody listens.
 */
static inline int lab_ask_for_walk(void)
{
	static volatile uint64_t cookie;
	int fd = open("/dev/lab.control", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	struct pollfd answer = { .fd = fd, .events = POLLIN };
	char line[64];
	int length;

	if (fd < 0)
		return -1;
	cookie = 0x6c61622d77616c6bu ^ (uint64_t)getpid();
	length = snprintf(line, sizeof(line), "walk %llx %llx\n",
			  (unsigned long long)(uintptr_t)&cookie, (unsigned long long)cookie);
	if (write(fd, line, (size_t)length) != length) {
		close(fd);
		return -1;
	}
	while (poll(&answer, 1, 0) == 0) {
		for (volatile int i = 0; i < 3000000; i++)
			;
	}
	close(fd);
	return 0;
}

#endif
