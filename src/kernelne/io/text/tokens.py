"""Compiled functions that split lines into fields and parse node ids and weights."""

from __future__ import annotations

import numpy as np

from kernelne._common.jit import cached
from kernelne.io.text.lines import MAX_LINE

WHITESPACE = 0  # used as separator byte: any run of spaces and tabs


# Why `scan` stopped.
OK, NOT_INTEGER, N_FIELDS, EMPTY_ID, BAD_WEIGHT, BAD_QUOTE, BAD_RETURN, TOO_LONG = range(8)

_SPACE, _TAB, _NEWLINE, _RETURN, _QUOTE, _HASH, _PERCENT = (ord(c) for c in ' \t\n\r"#%')


@cached()
def split_line(buffer, start, stop, separator, fields):  # type: ignore[no-untyped-def]
    """Split `buffer[start:stop]` into at most `len(fields)` fields; returns their number, -1: bad quote.

    `fields[k]` is set to (start, stop, is quoted), without surrounding blanks and quotes.
    """
    count = 0
    most = len(fields)
    i = start
    if separator == WHITESPACE:
        while count < most:
            while i < stop and (buffer[i] == _SPACE or buffer[i] == _TAB):
                i += 1
            if i == stop:
                break
            fields[count, 0] = i
            while i < stop and buffer[i] != _SPACE and buffer[i] != _TAB:
                i += 1
            fields[count, 1] = i
            fields[count, 2] = 0
            count += 1
        return count
    while count < most:
        while i < stop and buffer[i] != separator and (buffer[i] == _SPACE or buffer[i] == _TAB):
            i += 1
        quoted = i < stop and buffer[i] == _QUOTE
        if quoted:
            i += 1
            fields[count, 0] = i
            while i < stop and (buffer[i] != _QUOTE or (i + 1 < stop and buffer[i + 1] == _QUOTE)):
                i += 2 if buffer[i] == _QUOTE else 1
            if i >= stop:
                return -1
            fields[count, 1] = i
            i += 1
            while i < stop and buffer[i] != separator:
                if buffer[i] != _SPACE and buffer[i] != _TAB:
                    return -1
                i += 1
        else:
            fields[count, 0] = i
            last = i
            while i < stop and buffer[i] != separator:
                if buffer[i] != _SPACE and buffer[i] != _TAB:
                    last = i + 1
                i += 1
            fields[count, 1] = last
        fields[count, 2] = quoted
        count += 1
        if i == stop:
            break
        i += 1
    return count


@cached()
def parse_integer(buffer, start, stop):  # type: ignore[no-untyped-def]
    """(True, value) if `buffer[start:stop]` is an int64 in canonical form, else (False, 0)."""
    negative = start < stop and buffer[start] == 45
    start += negative
    if stop == start or stop - start > 19 or (buffer[start] == 48 and (stop - start > 1 or negative)):
        return False, 0
    value = np.uint64(0)  # holds any 19 digits
    for i in range(start, stop):
        digit = np.int64(buffer[i]) - 48
        if digit < 0 or digit > 9:
            return False, 0
        value = value * np.uint64(10) + np.uint64(digit)
    if value > np.uint64(2**63 - 1) + np.uint64(negative):
        return False, 0
    return True, -np.int64(value) if negative else np.int64(value)


@cached()
def parse_number(buffer, start, stop):  # type: ignore[no-untyped-def]
    """Parse the decimal number `buffer[start:stop]`, accurate to a few ulp of float64; NaN if invalid."""
    i = start
    negative = i < stop and buffer[i] == 45
    if i < stop and (buffer[i] == 45 or buffer[i] == 43):
        i += 1
    mantissa = np.uint64(0)
    n_kept = n_digits = 0
    exponent = np.int64(0)
    in_fraction = False
    while i < stop:
        digit = np.int64(buffer[i]) - 48
        if 0 <= digit <= 9:
            n_digits += 1
            if n_kept < 19:  # the mantissa holds any 19 digits; further digits are below the precision
                mantissa = mantissa * np.uint64(10) + np.uint64(digit)
                if mantissa > 0:
                    n_kept += 1
                if in_fraction:
                    exponent -= 1
            elif not in_fraction:
                exponent += 1
        elif digit == -2 and not in_fraction:
            in_fraction = True
        else:
            break
        i += 1
    if n_digits == 0:
        return np.nan
    if i < stop and (buffer[i] == 69 or buffer[i] == 101):
        i += 1
        below_one = i < stop and buffer[i] == 45
        if i < stop and (buffer[i] == 45 or buffer[i] == 43):
            i += 1
        if i == stop:
            return np.nan
        power = np.int64(0)
        while i < stop and 48 <= buffer[i] <= 57:
            if power < 1 << 30:
                power = power * 10 + np.int64(buffer[i]) - 48
            i += 1
        exponent += -power if below_one else power
    if i != stop:
        return np.nan
    value = float(mantissa)
    if mantissa > 0:
        # In steps, because 10**-330 is not a float64 while 10**19 times it is.
        while exponent != 0 and 0 < value < np.inf:
            step = exponent if -300 < exponent < 300 else np.int64(300 if exponent > 0 else -300)
            value = value * 10.0**step if step > 0 else value / 10.0**-step
            exponent -= step
    return -value if negative else value


@cached()
def scan(  # type: ignore[no-untyped-def]
    buffer,
    start,
    stop,
    line,
    first_line,
    separator,
    n_fields,
    places,
    n_full,
    weight_place,
    as_text,
    out,
    bad,
):
    """Parse the lines in `buffer[start:stop]`, which ends with a newline, into the arrays of `out`.

    `line` lines came before; those below `first_line` are skipped, as are blank lines and comments. A line
    must have `n_fields` fields (0: any number). Field `places[k]` is id k, and the first `n_full` of them
    must not be empty; field `weight_place` is the weight (-1: none). `out` is (ids, weights, text, ends): ids
    (k, m) int64, but where `as_text[k]` id i of column k is the bytes `text[k, ends[k, i]:ends[k, i + 1]]`;
    weights (m,) float64. Returns (number of edges, status, start of the line it stopped at, its number).

    `bad` (k + 1,) int64: invalid lines are skipped, their count is stored in the first entry and the numbers
    of the first k in the others. If `bad` is empty, parsing stops at the first invalid line.
    """
    ids, weights, text, ends = out
    # One more than a line may have, to detect too many.
    fields = np.empty((max(n_fields, 3) + 1, 3), np.int64)
    count = 0
    i = start
    while i < stop:
        line += 1
        begin = i
        while buffer[i] != _NEWLINE:
            if buffer[i] == _RETURN and buffer[i + 1] != _NEWLINE:
                return count, BAD_RETURN, begin, line
            i += 1
        end = i
        i += 1
        if end - begin > MAX_LINE:
            return count, TOO_LONG, begin, line
        if end > begin and buffer[end - 1] == _RETURN:
            end -= 1
        first = begin
        while first < end and (buffer[first] == _SPACE or buffer[first] == _TAB):
            first += 1
        if first == end or buffer[first] == _HASH or buffer[first] == _PERCENT or line < first_line:
            continue
        found = split_line(buffer, begin, end, separator, fields)
        status = OK
        weight = 0.0
        if found < 0:
            status = BAD_QUOTE
        elif n_fields > 0 and found != n_fields:
            status = N_FIELDS
        else:
            # Before ids are parsed: an invalid line must not turn the ids of all others into strings.
            for k in places[:n_full]:
                if fields[k, 0] == fields[k, 1] and fields[k, 2] == 0:
                    status = EMPTY_ID
            if weight_place >= 0 and status == OK:
                weight = parse_number(buffer, fields[weight_place, 0], fields[weight_place, 1])
                kept = np.float32(weight)  # as a graph keeps it: too large is infinite, too small is zero
                if not 0 <= weight < np.inf or kept == np.inf or (kept == 0 and weight > 0):
                    status = BAD_WEIGHT
        if status != OK:
            if len(bad) == 0:
                return count, status, begin, line
            bad[0] += 1
            if bad[0] < len(bad):
                bad[bad[0]] = line
            continue
        for k in range(len(places)):
            left, right, quoted = fields[places[k]]
            if not as_text[k]:
                plain, value = parse_integer(buffer, left, right)
                if quoted or not plain:
                    return count, NOT_INTEGER, begin, line
                ids[k, count] = value
                continue
            size = ends[k, count]
            j = left
            while j < right:
                text[k, size] = buffer[j]
                size += 1
                j += 2 if quoted and buffer[j] == _QUOTE else 1
            ends[k, count + 1] = size
        if weight_place >= 0:
            weights[count] = weight
        count += 1
    return count, OK, i, line
