/* libsvm_tokens.h - what stands between and after the tokens of a LIBSVM text. A newline ends every scan: a text needs
 * one at its end. Nothing here allocates or fails.
 */
#ifndef LSVM_LIBSVM_TOKENS_H
#define LSVM_LIBSVM_TOKENS_H

#define LSVM_INLINE static inline __attribute__((always_inline))

LSVM_INLINE int is_blank(char c) { return c == ' ' || c == '\t'; }

LSVM_INLINE const char *skip_blanks(const char *p)
{
    while (is_blank(*p))
        p++;
    return p;
}

LSVM_INLINE int at_line_end(const char *p) { return *p == '\n' || *p == '#' || (*p == '\r' && p[1] == '\n'); }

LSVM_INLINE int ends_token(const char *p) { return is_blank(*p) || at_line_end(p); }

#endif
