/* JSON strings of any bytes. */
#ifndef NPG_ANALYZER_JSON_TEXT_H
#define NPG_ANALYZER_JSON_TEXT_H

#include <jansson.h>

/**
 * npg_json_text() - a JSON string of a C string; bytes that are not UTF-8 become '?'.
 * @text: NULL gives JSON null.
 *
 * Return: a new reference; NULL when out of memory.
 * MT-Safe. Not AS-Safe.
 */
json_t *npg_json_text(const char *text);

#endif
