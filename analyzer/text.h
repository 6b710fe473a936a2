/* Text for people: sizes, times, shares, widths. Used by the commands of this stage. */
#ifndef NPG_ANALYZER_TEXT_H
#define NPG_ANALYZER_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define NPG_TEXT_SIZE 32 /* enough for any of the numbers */

/** npg_text_bytes() - "128 MiB". Return: @text. MT-Safe. */
const char *npg_text_bytes(uint64_t bytes, char text[NPG_TEXT_SIZE]);

/** npg_text_ns() - "1.23 s", "45.6 ms". Return: @text. MT-Safe. */
const char *npg_text_ns(double ns, char text[NPG_TEXT_SIZE]);

/** npg_text_percent() - a share 0..1 as "97.3 %". Return: @text. MT-Safe. */
const char *npg_text_percent(double share, char text[NPG_TEXT_SIZE]);

/**
 * npg_text_elide() - a name in at most @width columns; what is too much is cut out of its middle.
 * Control characters become '?'; UTF-8 is counted by characters.
 * @size: of @text, at least 4 * @width + 1 for any UTF-8; always NUL-terminated.
 * Return: @text. MT-Safe. Not AS-Safe.
 */
const char *npg_text_elide(const char *name, size_t width, char *text, size_t size);

/**
 * npg_text_columns() - width of the output: COLUMNS, else the terminal's, else 80; 40 .. 500.
 * MT-Safe env.
 */
size_t npg_text_columns(void);

/** npg_text_width() - characters of an UTF-8 text. MT-Safe. AS-Safe. */
size_t npg_text_width(const char *text);

/** npg_text_file_name() - the part of a path after its last slash. MT-Safe. AS-Safe. */
const char *npg_text_file_name(const char *path);

#endif
