/* See the header. */
#include "analyzer/json_text.h"

json_t *npg_json_text(const char *text)
{
	json_t *json;
	char *copy;

	if (text == NULL)
		return json_null();
	json = json_string(text);
	if (json != NULL)
		return json;
	copy = strdup(text);
	if (copy == NULL)
		return NULL;
	for (char *p = copy; *p != '\0'; p++)
		if ((unsigned char)*p >= 0x80)
			*p = '?';
	json = json_string(copy);
	free(copy);
	return json;
}
