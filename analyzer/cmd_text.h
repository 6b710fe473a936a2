/* Printing paragraphs, for commands only. */
#ifndef NPG_ANALYZER_CMD_TEXT_H
#define NPG_ANALYZER_CMD_TEXT_H

#include <stddef.h>

#include "lib/compiler.h"

/**
 * npg_text_wrap() - print a paragraph, broken at blanks to fit npg_text_columns().
 * @at: columns that are printed on the line already.
 * @indent: blanks before each further line.
 * MT-Safe. Not AS-Safe.
 */
void npg_text_wrap(FILE *out, size_t at, size_t indent, const char *format, ...) NPG_PRINTF(4, 5);

#endif
